package dev.space.cli;

/// How much the service says when it runs inside a command.
final class Logging {

  private Logging() {}

  /// Warnings only, unless the user asked for more with `SPACE_LOG`. Has to come before anything
  /// logs: the configuration reads the property once.
  static void quiet() {
    if (System.getenv("SPACE_LOG") == null) {
      System.setProperty("space.log", "warn");
    }
  }
}
