package dev.space.http;

import java.io.IOException;

/// The client of this exchange can't be read from or written to any more. Nothing is wrong with the
/// server: the exchange ends quietly.
public final class ClientGoneException extends IOException {
  public ClientGoneException(Throwable source) {
    super("The client went away: " + source.getMessage(), source);
  }
}
