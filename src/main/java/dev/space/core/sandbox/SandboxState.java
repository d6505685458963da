package dev.space.core.sandbox;

import java.util.Locale;

/// Where a sandbox is in its life. The legal moves are the rows of [SandboxTransitions].
public enum SandboxState {
  CREATING,
  RUNNING,
  PAUSING,
  PAUSED,
  RESUMING,
  SUSPENDING,
  SUSPENDED,
  WAKING,
  /// The guest powered itself off; its disk is kept until it is deleted.
  STOPPED,
  /// The guest or its VM died; the cause is kept with the sandbox.
  FAILED,
  DELETING,
  /// The tombstone. Nothing leads out of it.
  DELETED;

  /// The state as it stands in answers.
  public String wire() {
    return name().toLowerCase(Locale.ROOT);
  }

  /// No VM exists and none will, but for what a delete still has to remove.
  public boolean isOver() {
    return this == STOPPED || this == FAILED || this == DELETING || this == DELETED;
  }
}
