package dev.space.wire;

import java.io.IOException;

/// A server that answered an upgrade with something else.
public final class RefusedException extends IOException {

  private static final long serialVersionUID = 1;

  private final int status;
  private final String body;

  RefusedException(int status, String body) {
    super("the upgrade was answered with status " + status);
    this.status = status;
    this.body = body;
  }

  public int status() {
    return status;
  }

  /// The answer's body, such as a problem in JSON.
  public String body() {
    return body;
  }
}
