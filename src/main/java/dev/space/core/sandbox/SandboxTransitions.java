package dev.space.core.sandbox;

import static dev.space.core.sandbox.SandboxEvent.*;
import static dev.space.core.sandbox.SandboxState.*;

import java.util.Map;
import java.util.Optional;

/// The state machine of a sandbox as data. A pair that has no row is illegal and changes nothing.
final class SandboxTransitions {

  private record On(SandboxState state, SandboxEvent event) {}

  private static final Map<On, SandboxState> TABLE =
      Map.ofEntries(
          row(CREATING, CREATE_SUCCEEDED, RUNNING),
          row(CREATING, CREATE_FAILED, FAILED),
          row(CREATING, GUEST_FAILED, FAILED),
          row(CREATING, GUEST_STOPPED, FAILED),
          row(CREATING, DELETE_REQUESTED, DELETING),
          row(RUNNING, PAUSE_REQUESTED, PAUSING),
          row(RUNNING, SUSPEND_REQUESTED, SUSPENDING),
          row(RUNNING, GUEST_STOPPED, STOPPED),
          row(RUNNING, GUEST_FAILED, FAILED),
          row(RUNNING, DELETE_REQUESTED, DELETING),
          row(PAUSING, PAUSE_SUCCEEDED, PAUSED),
          row(PAUSING, PAUSE_FAILED, RUNNING),
          row(PAUSING, GUEST_STOPPED, STOPPED),
          row(PAUSING, GUEST_FAILED, FAILED),
          row(PAUSING, DELETE_REQUESTED, DELETING),
          row(PAUSED, WAKE_REQUESTED, RESUMING),
          row(PAUSED, SUSPEND_REQUESTED, SUSPENDING),
          // The news of an exit may come after the pause that it was faster than.
          row(PAUSED, GUEST_STOPPED, STOPPED),
          row(PAUSED, GUEST_FAILED, FAILED),
          row(PAUSED, DELETE_REQUESTED, DELETING),
          row(RESUMING, WAKE_SUCCEEDED, RUNNING),
          row(RESUMING, WAKE_FAILED, PAUSED),
          row(RESUMING, GUEST_STOPPED, STOPPED),
          row(RESUMING, GUEST_FAILED, FAILED),
          row(RESUMING, DELETE_REQUESTED, DELETING),
          row(SUSPENDING, SUSPEND_SUCCEEDED, SUSPENDED),
          row(SUSPENDING, SUSPEND_ROLLED_BACK_TO_RUNNING, RUNNING),
          row(SUSPENDING, SUSPEND_ROLLED_BACK_TO_PAUSED, PAUSED),
          row(SUSPENDING, GUEST_STOPPED, STOPPED),
          row(SUSPENDING, GUEST_FAILED, FAILED),
          row(SUSPENDING, DELETE_REQUESTED, DELETING),
          row(SUSPENDED, WAKE_REQUESTED, WAKING),
          // What was saved is gone or damaged.
          row(SUSPENDED, GUEST_FAILED, FAILED),
          row(SUSPENDED, DELETE_REQUESTED, DELETING),
          row(WAKING, WAKE_SUCCEEDED, RUNNING),
          row(WAKING, WAKE_FAILED, SUSPENDED),
          row(WAKING, DELETE_REQUESTED, DELETING),
          row(STOPPED, DELETE_REQUESTED, DELETING),
          row(FAILED, DELETE_REQUESTED, DELETING),
          row(DELETING, DELETE_REQUESTED, DELETING),
          row(DELETING, DELETE_SUCCEEDED, DELETED),
          row(DELETED, DELETE_REQUESTED, DELETED));

  private SandboxTransitions() {}

  /// The state that follows, or empty when the event is illegal in this state.
  static Optional<SandboxState> next(SandboxState state, SandboxEvent event) {
    return Optional.ofNullable(TABLE.get(new On(state, event)));
  }

  private static Map.Entry<On, SandboxState> row(
      SandboxState state, SandboxEvent event, SandboxState next) {
    return Map.entry(new On(state, event), next);
  }
}
