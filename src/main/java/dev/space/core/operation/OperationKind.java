package dev.space.core.operation;

import java.util.Locale;

/// What an operation does.
public enum OperationKind {
  CREATE,
  PAUSE,
  SUSPEND,
  WAKE,
  FORK,
  SNAPSHOT,
  DELETE,
  TEMPLATE_BUILD;

  /// The kind as it stands in answers.
  public String wire() {
    return name().toLowerCase(Locale.ROOT);
  }
}
