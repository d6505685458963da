package dev.space.core.operation;

import java.util.Locale;

/// Where an operation is. The last three are terminal and never left.
public enum OperationState {
  PENDING,
  RUNNING,
  SUCCEEDED,
  FAILED,
  CANCELLED;

  public boolean isTerminal() {
    return this == SUCCEEDED || this == FAILED || this == CANCELLED;
  }

  /// The state as it stands in answers.
  public String wire() {
    return name().toLowerCase(Locale.ROOT);
  }
}
