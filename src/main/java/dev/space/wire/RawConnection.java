package dev.space.wire;

import java.io.InputStream;

/// A connection that was upgraded to raw bytes. One thread reads while another writes.
public final class RawConnection implements AutoCloseable {

  private final Connection connection;

  RawConnection(Connection connection) {
    this.connection = connection;
  }

  /// What the other side sends; ends where it ends its direction.
  public InputStream in() {
    return connection.rest();
  }

  public void write(byte[] bytes, int offset, int length) throws WireException {
    connection.write(bytes, offset, length);
  }

  /// Ends this side's direction; the other's goes on.
  public void endWriting() throws WireException {
    connection.endWriting();
  }

  @Override
  public void close() {
    connection.close();
  }
}
