package dev.space.core.error;

/// Every error the system can report. The code is what callers may rely on; `status` is its HTTP
/// status. Texts may change, codes don't.
public enum ErrorCode {
  INVALID_REQUEST(400),
  UNKNOWN_FIELD(400),
  MALFORMED_BODY(400),
  UNAUTHENTICATED(401),
  TOKEN_EXPIRED(401),
  FORBIDDEN(403),
  NOT_FOUND(404),
  SANDBOX_NOT_FOUND(404),
  SESSION_NOT_FOUND(404),
  OPERATION_NOT_FOUND(404),
  TEMPLATE_NOT_FOUND(404),
  SNAPSHOT_NOT_FOUND(404),
  FILE_NOT_FOUND(404),
  METHOD_NOT_ALLOWED(405),
  NOT_ACCEPTABLE(406),
  REQUEST_TIMEOUT(408),
  CONFLICT(409),
  ILLEGAL_STATE(409),
  IDEMPOTENCY_MISMATCH(409),
  ALREADY_EXISTS(409),
  OFFSET_MISMATCH(409),
  PRECONDITION_FAILED(412),
  BODY_TOO_LARGE(413),
  UNSUPPORTED_MEDIA_TYPE(415),
  RANGE_NOT_SATISFIABLE(416),
  COMMAND_NOT_FOUND(422),
  USER_NOT_FOUND(422),
  WORKDIR_NOT_FOUND(422),
  NOT_A_FILE(422),
  NOT_A_DIRECTORY(422),
  PERMISSION_DENIED(422),
  RECIPE_INVALID(422),
  TOO_MANY_REQUESTS(429),
  HEADERS_TOO_LARGE(431),
  CANCELLED(499),
  INTERNAL(500),
  VMM_FAILED(500),
  TEMPLATE_BUILD_FAILED(500),
  SNAPSHOT_DAMAGED(500),
  NOT_SUPPORTED(501),
  PORT_CLOSED(502),
  SANDBOX_DIED(502),
  CAPACITY(503),
  SHUTTING_DOWN(503),
  PREREQUISITE_MISSING(503),
  GUEST_UNREACHABLE(504),
  DEADLINE_EXCEEDED(504),
  DISK_FULL(507),
  GUEST_DISK_FULL(507);

  private final int status;

  ErrorCode(int status) {
    this.status = status;
  }

  /// The HTTP status that goes with the code.
  public int status() {
    return status;
  }

  /// The code as it stands in answers: lower case with underscores.
  public String wire() {
    return name().toLowerCase(java.util.Locale.ROOT);
  }
}
