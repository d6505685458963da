package dev.space.guest;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import io.grpc.Status;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Turns what a guest refused into the catalogue's errors.
///
/// The agent's messages start with a reason, `user_not_found: no user 'x'`. The reasons are listed
/// at the head of `proto/agent.proto`; what starts with none of them goes by the gRPC code.
final class GuestErrors {

  private static final int TEXT_CHARS_MAX = 2048;

  private static final Pattern REASON = Pattern.compile("([a-z_]{3,40}): (.*)", Pattern.DOTALL);

  private static final Map<String, ErrorCode> REASONS =
      Map.ofEntries(
          Map.entry("not_adopted", ErrorCode.ILLEGAL_STATE),
          Map.entry("stale_generation", ErrorCode.CONFLICT),
          Map.entry("invalid_argument", ErrorCode.INVALID_REQUEST),
          Map.entry("process_not_found", ErrorCode.SESSION_NOT_FOUND),
          Map.entry("process_running", ErrorCode.ILLEGAL_STATE),
          Map.entry("process_ended", ErrorCode.ILLEGAL_STATE),
          Map.entry("too_many_processes", ErrorCode.TOO_MANY_REQUESTS),
          Map.entry("user_not_found", ErrorCode.USER_NOT_FOUND),
          Map.entry("workdir_not_found", ErrorCode.WORKDIR_NOT_FOUND),
          Map.entry("command_not_found", ErrorCode.COMMAND_NOT_FOUND),
          Map.entry("command_not_executable", ErrorCode.PERMISSION_DENIED),
          Map.entry("no_stdin", ErrorCode.ILLEGAL_STATE),
          Map.entry("no_terminal", ErrorCode.ILLEGAL_STATE),
          Map.entry("offset_mismatch", ErrorCode.OFFSET_MISMATCH),
          Map.entry("file_not_found", ErrorCode.FILE_NOT_FOUND),
          Map.entry("not_a_file", ErrorCode.NOT_A_FILE),
          Map.entry("not_a_directory", ErrorCode.NOT_A_DIRECTORY),
          Map.entry("already_exists", ErrorCode.ALREADY_EXISTS),
          Map.entry("permission_denied", ErrorCode.PERMISSION_DENIED),
          Map.entry("link_loop", ErrorCode.INVALID_REQUEST),
          Map.entry("not_empty", ErrorCode.CONFLICT),
          Map.entry("busy", ErrorCode.CONFLICT),
          Map.entry("disk_full", ErrorCode.GUEST_DISK_FULL),
          Map.entry("read_only", ErrorCode.PERMISSION_DENIED),
          Map.entry("name_too_long", ErrorCode.INVALID_REQUEST),
          Map.entry("network_mount", ErrorCode.NOT_SUPPORTED),
          Map.entry("too_many_watches", ErrorCode.TOO_MANY_REQUESTS),
          Map.entry("watch_root_gone", ErrorCode.FILE_NOT_FOUND),
          Map.entry("watch_not_found", ErrorCode.NOT_FOUND),
          Map.entry("port_closed", ErrorCode.PORT_CLOSED),
          Map.entry("broken_archive", ErrorCode.INVALID_REQUEST),
          Map.entry("cancelled", ErrorCode.CANCELLED),
          Map.entry("internal", ErrorCode.INTERNAL));

  private GuestErrors() {}

  /// The error that a status means, or empty when it means that the link itself is lost.
  static Optional<Problem> refusal(Status status) {
    String text = printable(status.getDescription() == null ? "" : status.getDescription());
    Matcher m = REASON.matcher(text);
    if (m.matches()) {
      ErrorCode code = REASONS.get(m.group(1));
      if (code != null) {
        return Optional.of(Problem.of(code, m.group(2)));
      }
    }
    String detail = text.isEmpty() ? "The guest refused the call." : text;
    return switch (status.getCode()) {
      case OK, UNAVAILABLE -> Optional.empty();
      case CANCELLED -> Optional.of(Problem.of(ErrorCode.CANCELLED, detail));
      case INVALID_ARGUMENT -> Optional.of(Problem.of(ErrorCode.INVALID_REQUEST, detail));
      case DEADLINE_EXCEEDED ->
          Optional.of(
              Problem.of(ErrorCode.DEADLINE_EXCEEDED, "The guest did not answer in time.")
                  .because(detail));
      case NOT_FOUND -> Optional.of(Problem.of(ErrorCode.NOT_FOUND, detail));
      case ALREADY_EXISTS -> Optional.of(Problem.of(ErrorCode.ALREADY_EXISTS, detail));
      case PERMISSION_DENIED, UNAUTHENTICATED ->
          Optional.of(Problem.of(ErrorCode.PERMISSION_DENIED, detail));
      case RESOURCE_EXHAUSTED -> Optional.of(Problem.of(ErrorCode.GUEST_DISK_FULL, detail));
      case FAILED_PRECONDITION -> Optional.of(Problem.of(ErrorCode.ILLEGAL_STATE, detail));
      case ABORTED -> Optional.of(Problem.of(ErrorCode.CONFLICT, detail));
      case OUT_OF_RANGE -> Optional.of(Problem.of(ErrorCode.RANGE_NOT_SATISFIABLE, detail));
      case UNIMPLEMENTED ->
          Optional.of(
              Problem.of(ErrorCode.NOT_SUPPORTED, "The guest's agent does not know this call.")
                  .because(detail)
                  .remedy("Build the template again: its agent is of another version."));
      case UNKNOWN, INTERNAL, DATA_LOSS ->
          Optional.of(Problem.of(ErrorCode.INTERNAL, "The guest's agent failed.").because(detail));
    };
  }

  /// The error for an answer that the contract does not allow.
  static Problem broken(String what) {
    return Problem.of(ErrorCode.INTERNAL, "The guest's agent broke the protocol.").because(what);
  }

  private static String printable(String text) {
    String cut = text.length() > TEXT_CHARS_MAX ? text.substring(0, TEXT_CHARS_MAX) + "…" : text;
    return cut.codePoints()
        .map(c -> Character.isISOControl(c) && c != '\n' && c != '\t' ? '?' : c)
        .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append)
        .toString();
  }
}
