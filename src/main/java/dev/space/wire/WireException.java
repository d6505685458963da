package dev.space.wire;

import java.io.IOException;

/// An HTTP exchange that did not come to its end. Callers know what they were doing and turn it
/// into their own error.
public final class WireException extends IOException {

  private static final long serialVersionUID = 1;

  /// What went wrong.
  public enum Fault {
    /// Nobody listens there, or the address can't be reached.
    NOT_CONNECTED,
    /// The time that was given is over.
    TIMED_OUT,
    /// The connection ended before the answer did.
    CUT_OFF,
    /// What came was not HTTP, or was over a limit.
    MALFORMED
  }

  private final Fault fault;

  WireException(Fault fault, String message) {
    super(message);
    this.fault = fault;
  }

  WireException(Fault fault, String message, Throwable cause) {
    super(message, cause);
    this.fault = fault;
  }

  public Fault fault() {
    return fault;
  }
}
