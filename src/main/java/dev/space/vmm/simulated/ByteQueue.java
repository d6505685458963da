package dev.space.vmm.simulated;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Optional;

/// Bytes in the order they came. Not safe for use by several threads.
final class ByteQueue {

  private byte[] bytes = new byte[0];
  private int from;
  private int to;
  private final int max;

  ByteQueue(int max) {
    this.max = max;
  }

  int size() {
    return to - from;
  }

  void put(byte[] data) {
    if (to + data.length > bytes.length) {
      byte[] bigger = new byte[Math.max(256, Math.min(2 * max, 2 * (size() + data.length)))];
      System.arraycopy(bytes, from, bigger, 0, size());
      to = size();
      from = 0;
      bytes = bigger;
    }
    System.arraycopy(data, 0, bytes, to, data.length);
    to += data.length;
  }

  byte[] take(int most) {
    int n = Math.min(most, size());
    byte[] out = Arrays.copyOfRange(bytes, from, from + n);
    from += n;
    return out;
  }

  byte[] peek() {
    return Arrays.copyOfRange(bytes, from, to);
  }

  /// The next line without its end, when it is whole.
  Optional<String> line() {
    for (int i = from; i < to; i++) {
      if (bytes[i] == '\n') {
        String line = new String(bytes, from, i - from, StandardCharsets.UTF_8);
        from = i + 1;
        return Optional.of(line);
      }
    }
    return Optional.empty();
  }
}
