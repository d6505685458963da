package dev.space.dataplane;

/// Keeps characters of UTF-8 whole that a stream of bytes divides: the beginning of a character at
/// the end of a piece is held back and put before the next piece.
final class CharacterHold {

  private static final int BYTES_MAX = 3;
  private static final byte[] NOTHING = {};

  private byte[] held = NOTHING;

  /// Starts after these bytes, of which the last may begin a character.
  void startAfter(byte[] last) {
    int keep = unfinished(last);
    held =
        keep == 0 ? NOTHING : java.util.Arrays.copyOfRange(last, last.length - keep, last.length);
  }

  /// What can be passed on now: what was held, then the piece, without an unfinished end.
  byte[] next(byte[] piece) {
    if (held.length == 0) {
      int keep = unfinished(piece);
      if (keep == 0) {
        return piece;
      }
    }
    byte[] all = new byte[held.length + piece.length];
    System.arraycopy(held, 0, all, 0, held.length);
    System.arraycopy(piece, 0, all, held.length, piece.length);
    int whole = all.length - unfinished(all);
    held = java.util.Arrays.copyOfRange(all, whole, all.length);
    return java.util.Arrays.copyOf(all, whole);
  }

  /// What is held when nothing will follow.
  byte[] rest() {
    byte[] rest = held;
    held = NOTHING;
    return rest;
  }

  /// Bytes at the end that begin a character but don't end it.
  static int unfinished(byte[] bytes) {
    for (int back = 1; back <= Math.min(BYTES_MAX, bytes.length); back++) {
      int at = bytes.length - back;
      int lead = bytes[at] & 0xff;
      if (lead < 0x80) {
        return 0;
      }
      if (lead >= 0xc0) {
        boolean short1 = Utf8.length(lead) > back;
        boolean valid = back < 2 || Utf8.secondIsValid(lead, bytes[at + 1] & 0xff);
        return short1 && valid ? back : 0;
      }
    }
    return 0;
  }
}
