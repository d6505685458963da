package dev.space.wire;

import dev.space.wire.WireException.Fault;
import java.io.IOException;
import java.io.InputStream;

/// The body of an answer. A body that ends early is an error, never an end.
abstract sealed class BodyStream extends InputStream {

  final Connection connection;

  BodyStream(Connection connection) {
    this.connection = connection;
  }

  @Override
  public final int read() throws IOException {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
  }

  @Override
  public abstract int read(byte[] into, int offset, int length) throws IOException;

  @Override
  public final void close() {
    connection.close();
  }

  WireException cutOff() {
    return new WireException(
        Fault.CUT_OFF, connection.endpoint() + " ended the connection inside an answer");
  }

  /// A body of a length told in advance.
  static final class Fixed extends BodyStream {
    private long left;

    Fixed(Connection connection, long length) {
      super(connection);
      left = length;
    }

    @Override
    public int read(byte[] into, int offset, int length) throws IOException {
      if (length == 0) {
        return 0;
      }
      if (left == 0) {
        return -1;
      }
      int n = connection.read(into, offset, (int) Math.min(length, left));
      if (n < 0) {
        throw cutOff();
      }
      left -= n;
      return n;
    }
  }

  /// A body in chunks.
  static final class Chunked extends BodyStream {
    private static final int LINE_BYTES_MAX = 8 * 1024;
    private long left;
    private boolean first = true;
    private boolean ended;

    Chunked(Connection connection) {
      super(connection);
    }

    @Override
    public int read(byte[] into, int offset, int length) throws IOException {
      if (length == 0) {
        return 0;
      }
      if (left == 0 && !ended) {
        nextChunk();
      }
      if (ended) {
        return -1;
      }
      int n = connection.read(into, offset, (int) Math.min(length, left));
      if (n < 0) {
        throw cutOff();
      }
      left -= n;
      return n;
    }

    private void nextChunk() throws WireException {
      if (!first && !line().isEmpty()) {
        throw new WireException(Fault.MALFORMED, "a chunk is longer than it said");
      }
      first = false;
      String size = line();
      int semicolon = size.indexOf(';');
      try {
        left = Long.parseLong((semicolon < 0 ? size : size.substring(0, semicolon)).strip(), 16);
      } catch (NumberFormatException e) {
        throw new WireException(Fault.MALFORMED, "'" + size + "' is no chunk size", e);
      }
      if (left < 0) {
        throw new WireException(Fault.MALFORMED, "a chunk size is negative");
      }
      if (left == 0) {
        ended = true;
        while (!line().isEmpty()) {
          // Trailers carry nothing that is used here.
        }
      }
    }

    private String line() throws WireException {
      return connection.readLine(LINE_BYTES_MAX).orElseThrow(this::cutOff);
    }
  }

  /// A body that ends with its connection.
  static final class UntilClose extends BodyStream {
    UntilClose(Connection connection) {
      super(connection);
    }

    @Override
    public int read(byte[] into, int offset, int length) throws IOException {
      return length == 0 ? 0 : connection.read(into, offset, length);
    }
  }
}
