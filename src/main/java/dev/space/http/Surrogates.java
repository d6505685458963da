package dev.space.http;

/// Halves of characters in JSON. `\ud800` alone is an escape that JSON's grammar allows and that
/// stands for no text: encoded later, it would silently become another character.
final class Surrogates {

  private static final int ESCAPE_CHARS = 6;
  private static final int NONE = -1;

  private Surrogates() {}

  /// Whether a half of a pair is escaped without its other half.
  static boolean alone(byte[] json) {
    int i = 0;
    while (i < json.length) {
      if (json[i] != '\\') {
        i++;
        continue;
      }
      int unit = unit(json, i);
      if (unit == NONE || !Character.isSurrogate((char) unit)) {
        i += 2;
        continue;
      }
      int next = unit(json, i + ESCAPE_CHARS);
      if (next == NONE || !Character.isSurrogatePair((char) unit, (char) next)) {
        return true;
      }
      i += 2 * ESCAPE_CHARS;
    }
    return false;
  }

  /// The code unit that is escaped there.
  private static int unit(byte[] json, int at) {
    if (at + ESCAPE_CHARS > json.length || json[at] != '\\' || json[at + 1] != 'u') {
      return NONE;
    }
    int unit = 0;
    for (int i = at + 2; i < at + ESCAPE_CHARS; i++) {
      int digit = json[i] < 0 ? NONE : Character.digit(json[i], 16);
      if (digit < 0) {
        return NONE;
      }
      unit = unit << 4 | digit;
    }
    return unit;
  }
}
