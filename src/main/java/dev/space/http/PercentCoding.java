package dev.space.http;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/// Percent-decoding that refuses what it doesn't understand instead of guessing.
final class PercentCoding {
  private PercentCoding() {}

  /// Decodes one path segment or query part.
  ///
  /// @param plusIsSpace as in queries
  /// @param where for the error, such as `the path`
  /// @throws SpaceException INVALID_REQUEST for a broken escape, or bytes that are not UTF-8
  static String decode(String raw, boolean plusIsSpace, String where) {
    if (raw.indexOf('%') < 0 && (!plusIsSpace || raw.indexOf('+') < 0) && isAscii(raw)) {
      return raw;
    }
    var bytes = new ByteArrayOutputStream(raw.length());
    for (int i = 0; i < raw.length(); i++) {
      char c = raw.charAt(i);
      if (c == '%') {
        int high = i + 2 < raw.length() ? hexDigit(raw.charAt(i + 1)) : -1;
        int low = i + 2 < raw.length() ? hexDigit(raw.charAt(i + 2)) : -1;
        if (high < 0 || low < 0) {
          throw bad(where, "a % is not followed by two hexadecimal digits");
        }
        bytes.write(high << 4 | low);
        i += 2;
      } else if (c == '+' && plusIsSpace) {
        bytes.write(' ');
      } else if (c < 0x80) {
        bytes.write(c);
      } else {
        bytes.writeBytes(String.valueOf(c).getBytes(StandardCharsets.UTF_8));
      }
    }
    try {
      return StandardCharsets.UTF_8
          .newDecoder()
          .decode(ByteBuffer.wrap(bytes.toByteArray()))
          .toString();
    } catch (CharacterCodingException _) {
      throw bad(where, "the escaped bytes are not UTF-8");
    }
  }

  private static int hexDigit(char c) {
    return c < 0x80 ? Character.digit(c, 16) : -1;
  }

  private static boolean isAscii(String text) {
    return text.chars().allMatch(c -> c < 0x80);
  }

  private static SpaceException bad(String where, String why) {
    return Problem.of(ErrorCode.INVALID_REQUEST, "Cannot read " + where)
        .because(why)
        .remedy("Percent-encode the UTF-8 bytes of every reserved character.")
        .toException();
  }
}
