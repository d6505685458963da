package dev.space.e2b;

import dev.space.core.error.ErrorCode;
import java.util.Locale;

/// Error codes of the Connect protocol with the HTTP status of unary answers.
enum ConnectCode {
  CANCELED(499),
  UNKNOWN(500),
  INVALID_ARGUMENT(400),
  DEADLINE_EXCEEDED(504),
  NOT_FOUND(404),
  ALREADY_EXISTS(409),
  PERMISSION_DENIED(403),
  RESOURCE_EXHAUSTED(429),
  FAILED_PRECONDITION(400),
  ABORTED(409),
  UNIMPLEMENTED(501),
  INTERNAL(500),
  UNAVAILABLE(503),
  UNAUTHENTICATED(401);

  private final int status;

  ConnectCode(int status) {
    this.status = status;
  }

  int status() {
    return status;
  }

  String wire() {
    return name().toLowerCase(Locale.ROOT);
  }

  /// The code that E2B's own server gives for an error of ours.
  static ConnectCode of(ErrorCode code) {
    return switch (code) {
      case INVALID_REQUEST,
          UNKNOWN_FIELD,
          MALFORMED_BODY,
          NOT_ACCEPTABLE,
          UNSUPPORTED_MEDIA_TYPE,
          RANGE_NOT_SATISFIABLE,
          COMMAND_NOT_FOUND,
          WORKDIR_NOT_FOUND,
          NOT_A_FILE,
          NOT_A_DIRECTORY,
          RECIPE_INVALID ->
          INVALID_ARGUMENT;
      case UNAUTHENTICATED, TOKEN_EXPIRED, USER_NOT_FOUND -> UNAUTHENTICATED;
      case FORBIDDEN, PERMISSION_DENIED -> PERMISSION_DENIED;
      case NOT_FOUND,
          SANDBOX_NOT_FOUND,
          SESSION_NOT_FOUND,
          OPERATION_NOT_FOUND,
          TEMPLATE_NOT_FOUND,
          SNAPSHOT_NOT_FOUND,
          FILE_NOT_FOUND ->
          NOT_FOUND;
      case ALREADY_EXISTS -> ALREADY_EXISTS;
      case METHOD_NOT_ALLOWED, NOT_SUPPORTED -> UNIMPLEMENTED;
      case CONFLICT, ILLEGAL_STATE, IDEMPOTENCY_MISMATCH, OFFSET_MISMATCH, PRECONDITION_FAILED ->
          FAILED_PRECONDITION;
      case BODY_TOO_LARGE,
          HEADERS_TOO_LARGE,
          TOO_MANY_REQUESTS,
          CAPACITY,
          DISK_FULL,
          GUEST_DISK_FULL ->
          RESOURCE_EXHAUSTED;
      case CANCELLED -> CANCELED;
      case INTERNAL, VMM_FAILED, TEMPLATE_BUILD_FAILED, SNAPSHOT_DAMAGED -> INTERNAL;
      case PORT_CLOSED, SANDBOX_DIED, SHUTTING_DOWN, PREREQUISITE_MISSING, GUEST_UNREACHABLE ->
          UNAVAILABLE;
      case DEADLINE_EXCEEDED, REQUEST_TIMEOUT -> DEADLINE_EXCEEDED;
    };
  }
}
