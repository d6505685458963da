package dev.space.http.jetty;

import dev.space.http.ClientGoneException;
import java.io.IOException;
import java.io.InputStream;

/// A request's body; tells failures of the client from all others.
final class ClientInput extends InputStream {
  private final InputStream in;

  ClientInput(InputStream in) {
    this.in = in;
  }

  @Override
  public int read() throws IOException {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
  }

  @Override
  public int read(byte[] buffer, int offset, int length) throws IOException {
    try {
      return in.read(buffer, offset, length);
    } catch (IOException e) {
      throw new ClientGoneException(e);
    }
  }

  @Override
  public int available() throws IOException {
    return in.available();
  }

  @Override
  public void close() {
    // The rest of the body is dealt with when the exchange ends.
  }
}
