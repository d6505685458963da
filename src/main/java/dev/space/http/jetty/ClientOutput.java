package dev.space.http.jetty;

import dev.space.http.ClientGoneException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Blocker;

/// An answer's body. Each write blocks until the client's window or socket took it, and is written
/// through at once, without a copy.
final class ClientOutput extends OutputStream {
  private final Response response;

  ClientOutput(Response response) {
    this.response = response;
  }

  @Override
  public void write(int b) throws IOException {
    write(new byte[] {(byte) b}, 0, 1);
  }

  @Override
  public void write(byte[] bytes, int offset, int length) throws IOException {
    if (length > 0) {
      write(ByteBuffer.wrap(bytes, offset, length));
    }
  }

  /// Sends status and headers when nothing was sent yet.
  void commit() throws ClientGoneException {
    if (!response.isCommitted()) {
      write(ByteBuffer.allocate(0));
    }
  }

  private void write(ByteBuffer bytes) throws ClientGoneException {
    try (Blocker.Callback written = Blocker.callback()) {
      response.write(false, bytes, written);
      written.block();
    } catch (IOException e) {
      throw new ClientGoneException(e);
    }
  }

  @Override
  public void close() {
    // The end of the exchange ends the body.
  }
}
