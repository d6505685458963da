package dev.space.core.error;

import java.util.Optional;

/// One error as a value: what happened, why, and what to do about it.
///
/// @param code what callers may rely on
/// @param detail what happened, one sentence, without secrets
/// @param cause why, when known
/// @param remedy what the reader can do, when there is something
public record Problem(
    ErrorCode code, String detail, Optional<String> cause, Optional<String> remedy) {

  /// An error of which only the event itself is known.
  public static Problem of(ErrorCode code, String detail) {
    return new Problem(code, detail, Optional.empty(), Optional.empty());
  }

  /// The same error with its cause.
  public Problem because(String why) {
    return new Problem(code, detail, Optional.of(why), remedy);
  }

  /// The same error with what to do about it.
  public Problem remedy(String action) {
    return new Problem(code, detail, cause, Optional.of(action));
  }

  /// The exception that carries this error to the caller.
  public SpaceException toException() {
    return new SpaceException(this);
  }

  /// The exception that carries this error and the throwable behind it.
  public SpaceException toException(Throwable source) {
    return new SpaceException(this, source);
  }

  /// What happened and why in one line, for logs and terminals.
  public String oneLine() {
    return detail + cause.map(c -> ": " + c).orElse("");
  }
}
