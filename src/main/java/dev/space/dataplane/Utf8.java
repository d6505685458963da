package dev.space.dataplane;

/// Facts of UTF-8 (RFC 3629, section 4).
final class Utf8 {

  private Utf8() {}

  /// How many bytes a character has that begins with this one; 0 when none does.
  static int length(int lead) {
    if (lead < 0x80) {
      return 1;
    }
    if (lead < 0xc2 || lead > 0xf4) {
      return 0;
    }
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  }

  /// Whether a second byte is allowed after this first: no overlong forms, no surrogates, nothing
  /// above U+10FFFF.
  static boolean secondIsValid(int lead, int second) {
    int low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    int high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    return second >= low && second <= high;
  }

  /// Bytes of the valid character at this place; 0 when there is none.
  static int valid(byte[] bytes, int at) {
    int lead = bytes[at] & 0xff;
    int length = length(lead);
    if (length == 0 || at + length > bytes.length) {
      return 0;
    }
    if (length > 1 && !secondIsValid(lead, bytes[at + 1] & 0xff)) {
      return 0;
    }
    for (int i = 2; i < length; i++) {
      if ((bytes[at + i] & 0xc0) != 0x80) {
        return 0;
      }
    }
    return length;
  }
}
