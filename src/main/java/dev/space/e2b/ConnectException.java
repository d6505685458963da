package dev.space.e2b;

import dev.space.core.error.SpaceException;

/// An error that a Connect call answers with.
final class ConnectException extends RuntimeException {

  private final ConnectCode code;

  ConnectException(ConnectCode code, String message) {
    super(message);
    this.code = code;
  }

  static ConnectException of(SpaceException e) {
    return new ConnectException(ConnectCode.of(e.code()), e.problem().oneLine());
  }

  ConnectCode code() {
    return code;
  }

  String text() {
    String message = getMessage();
    return message == null ? code.wire() : message;
  }
}
