package dev.space.http;

/// Text of a caller as it may stand in an error: short, and without control characters.
public final class Shown {
  private static final int CHARS_MAX = 80;

  private Shown() {}

  public static String of(String text) {
    var shown = new StringBuilder();
    for (int i = 0; i < text.length() && i < CHARS_MAX; i++) {
      char c = text.charAt(i);
      shown.append(Character.isISOControl(c) || Character.isSurrogate(c) ? '?' : c);
    }
    return text.length() > CHARS_MAX ? shown + "…" : shown.toString();
  }
}
