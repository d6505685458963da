package dev.space.core.sandbox;

/// What can happen to a sandbox. Requests come from callers and timers, the rest from the node.
enum SandboxEvent {
  CREATE_SUCCEEDED,
  CREATE_FAILED,
  PAUSE_REQUESTED,
  PAUSE_SUCCEEDED,
  PAUSE_FAILED,
  SUSPEND_REQUESTED,
  SUSPEND_SUCCEEDED,
  /// The save failed and the VM runs on.
  SUSPEND_ROLLED_BACK_TO_RUNNING,
  /// The save failed and the VM, paused before, is paused again.
  SUSPEND_ROLLED_BACK_TO_PAUSED,
  WAKE_REQUESTED,
  WAKE_SUCCEEDED,
  /// The wake failed; what was resident or saved is untouched.
  WAKE_FAILED,
  GUEST_STOPPED,
  GUEST_FAILED,
  DELETE_REQUESTED,
  DELETE_SUCCEEDED
}
