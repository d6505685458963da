package dev.space.core.guest;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// A process to start in a guest.
///
/// @param id chosen by the host; starting the same id twice starts one process
/// @param argv never parsed by a shell; the first word is looked up in PATH
/// @param env wins over the sandbox's environment
/// @param cwd empty means the sandbox's default
/// @param user name or uid; empty means the sandbox's default
/// @param stdin whether there is an input; without it the process reads end-of-file at once
/// @param pty window size when it gets a terminal
/// @param timeout at its end the whole tree is killed
/// @param killTreeAtExit whether what is left of the tree dies with the process
public record ProcessSpec(
    String id,
    List<String> argv,
    Map<String, String> env,
    Optional<String> cwd,
    Optional<String> user,
    boolean stdin,
    Optional<PtySize> pty,
    Optional<Duration> timeout,
    String tag,
    boolean killTreeAtExit) {

  /// Size of a terminal in characters.
  public record PtySize(int cols, int rows) {}

  /// A command with nothing else asked for.
  public static ProcessSpec of(String id, List<String> argv) {
    return new ProcessSpec(
        id,
        argv,
        Map.of(),
        Optional.empty(),
        Optional.empty(),
        false,
        Optional.empty(),
        Optional.empty(),
        "",
        true);
  }
}
