package dev.space.dataplane;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/// Bodies, carried on as they come.
final class Bodies {

  private static final int BUFFER_BYTES = 64 * 1024;

  private Bodies() {}

  /// Copies to the end.
  static void copy(InputStream from, OutputStream to) throws IOException {
    copy(from, to, Long.MAX_VALUE);
  }

  /// Copies up to a number of bytes, flushing each piece; says how many there were.
  static long copy(InputStream from, OutputStream to, long most) throws IOException {
    byte[] buffer = new byte[BUFFER_BYTES];
    long sent = 0;
    while (sent < most) {
      int n = from.read(buffer, 0, (int) Math.min(buffer.length, most - sent));
      if (n < 0) {
        break;
      }
      to.write(buffer, 0, n);
      to.flush();
      sent += n;
    }
    return sent;
  }
}
