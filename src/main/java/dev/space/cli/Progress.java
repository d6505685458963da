package dev.space.cli;

import java.io.PrintStream;

/// One line about the step at hand, rewritten in place: on a terminal only.
final class Progress implements AutoCloseable {

  private static final int WIDTH_MAX = 78;
  private static final String ERASE_LINE = "\r[K";

  private final PrintStream err;
  private final boolean shown;
  private String last = "";

  Progress(Surroundings surroundings, boolean quiet) {
    err = surroundings.err();
    shown = surroundings.errTerminal() && !quiet;
  }

  /// Shows a step; control characters in it are not passed on.
  synchronized void step(String text) {
    if (!shown) {
      return;
    }
    String line = text.replaceAll("\\p{Cntrl}", " ");
    line = line.length() > WIDTH_MAX ? line.substring(0, WIDTH_MAX - 1) + "…" : line;
    if (!line.equals(last)) {
      err.print(ERASE_LINE + line);
      err.flush();
      last = line;
    }
  }

  @Override
  public void close() {
    clear();
  }

  /// Takes the line away.
  synchronized void clear() {
    if (shown && !last.isEmpty()) {
      err.print(ERASE_LINE);
      err.flush();
      last = "";
    }
  }
}
