package dev.space.core.session;

import java.util.Locale;

/// Where a session is. The last three are terminal.
public enum SessionState {
  /// Made; the process starts at the first attach.
  CREATED,
  RUNNING,
  /// Its process ended and the status is known.
  EXITED,
  /// It never started: no such command, user or directory.
  FAILED,
  /// Its sandbox died or was deleted before an exit status was seen.
  LOST;

  public boolean isTerminal() {
    return this == EXITED || this == FAILED || this == LOST;
  }

  /// The state as it stands in answers.
  public String wire() {
    return name().toLowerCase(Locale.ROOT);
  }
}
