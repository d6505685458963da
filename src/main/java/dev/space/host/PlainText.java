package dev.space.host;

/// Makes text that a guest wrote fit to be shown.
public final class PlainText {

  private PlainText() {}

  /// The text without escape sequences, carriage returns and other controls.
  public static String of(String text) {
    return text.replaceAll("\u001b\\[[0-9;?]*[A-Za-z]", "")
        .replace("\r", "")
        .replaceAll("[\\p{Cntrl}&&[^\n\t]]", "?");
  }
}
