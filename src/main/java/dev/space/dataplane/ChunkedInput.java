package dev.space.dataplane;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;

/// The body of a chunked message (RFC 9112, 7.1). Trailers are read and dropped.
final class ChunkedInput extends InputStream {

  private static final int LINE_BYTES_MAX = 8192;
  private static final int TRAILERS_MAX = 64;
  private static final int SIZE_DIGITS_MAX = 15;

  private final InputStream in;
  private long left;
  private boolean first = true;
  private boolean ended;

  ChunkedInput(InputStream in) {
    this.in = in;
  }

  @Override
  public int read() throws IOException {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
  }

  @Override
  public int read(byte[] into, int at, int count) throws IOException {
    if (count == 0) {
      return 0;
    }
    if (left == 0 && !ended) {
      nextChunk();
    }
    if (ended) {
      return -1;
    }
    int n = in.read(into, at, (int) Math.min(count, left));
    if (n < 0) {
      throw new EOFException("the server ended within a chunk");
    }
    left -= n;
    return n;
  }

  private void nextChunk() throws IOException {
    if (!first && !line().isEmpty()) {
      throw new IOException("a chunk has no end");
    }
    first = false;
    String size = line();
    int semicolon = size.indexOf(';');
    String digits = (semicolon < 0 ? size : size.substring(0, semicolon)).strip();
    if (!digits.matches("[0-9a-fA-F]{1," + SIZE_DIGITS_MAX + "}")) {
      throw new IOException("the size of a chunk is malformed");
    }
    left = Long.parseLong(digits, 16);
    if (left == 0) {
      int trailers = 0;
      while (!line().isEmpty()) {
        if (++trailers > TRAILERS_MAX) {
          throw new IOException("more than " + TRAILERS_MAX + " trailers");
        }
      }
      ended = true;
    }
  }

  private String line() throws IOException {
    var line = new StringBuilder();
    int b = in.read();
    while (b != '\n') {
      if (b < 0) {
        throw new EOFException("the server ended within a chunked body");
      }
      if (line.length() == LINE_BYTES_MAX) {
        throw new IOException("a line of a chunked body is too long");
      }
      line.append((char) b);
      b = in.read();
    }
    int length = line.length();
    return length > 0 && line.charAt(length - 1) == '\r'
        ? line.substring(0, length - 1)
        : line.toString();
  }
}
