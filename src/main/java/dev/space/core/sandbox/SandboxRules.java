package dev.space.core.sandbox;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationKind;
import dev.space.core.operation.OperationState;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/// What may be asked of a sandbox. A request is judged by the state that the sandbox will be in
/// when its turn comes, so that a suspend right after a create is legal and a pause after a queued
/// suspend is not.
final class SandboxRules {

  private SandboxRules() {}

  /// The state after everything that is open was done.
  static SandboxState projected(SandboxState state, List<Operation> open) {
    SandboxState at = settled(state);
    for (Operation operation : open) {
      if (operation.state() == OperationState.PENDING && !at.isOver()) {
        at = after(operation.kind(), at);
      }
    }
    return at;
  }

  private static SandboxState settled(SandboxState state) {
    return switch (state) {
      case CREATING, RESUMING, WAKING, RUNNING -> SandboxState.RUNNING;
      case PAUSING, PAUSED -> SandboxState.PAUSED;
      case SUSPENDING, SUSPENDED -> SandboxState.SUSPENDED;
      case STOPPED, FAILED, DELETING, DELETED -> state;
    };
  }

  private static SandboxState after(OperationKind kind, SandboxState before) {
    return switch (kind) {
      case PAUSE -> SandboxState.PAUSED;
      case SUSPEND -> SandboxState.SUSPENDED;
      case WAKE -> SandboxState.RUNNING;
      case DELETE -> SandboxState.DELETING;
      case CREATE, FORK, SNAPSHOT, TEMPLATE_BUILD -> before;
    };
  }

  /// What may be asked of a sandbox that is, or is on its way to be, in this state.
  static Set<OperationKind> allowed(SandboxState state) {
    return switch (settled(state)) {
      case RUNNING, PAUSED ->
          EnumSet.of(
              OperationKind.PAUSE,
              OperationKind.SUSPEND,
              OperationKind.WAKE,
              OperationKind.SNAPSHOT,
              OperationKind.FORK,
              OperationKind.DELETE);
      case SUSPENDED -> EnumSet.of(OperationKind.SUSPEND, OperationKind.WAKE, OperationKind.DELETE);
      case STOPPED, FAILED, DELETING, DELETED -> EnumSet.of(OperationKind.DELETE);
      case CREATING, RESUMING, WAKING, PAUSING, SUSPENDING ->
          throw new IllegalStateException("not a settled state: " + state);
    };
  }

  /// Why a request is refused in this state; empty when it isn't.
  static Optional<Problem> refusal(OperationKind kind, SandboxState state, Optional<Problem> why) {
    Set<OperationKind> allowed = allowed(state);
    if (allowed.contains(kind)) {
      return Optional.empty();
    }
    Problem problem =
        Problem.of(
                ErrorCode.ILLEGAL_STATE,
                "the sandbox is %s, so %s is not possible".formatted(state.wire(), kind.wire()))
            .remedy(
                "Possible now: "
                    + allowed.stream().map(OperationKind::wire).collect(Collectors.joining(", "))
                    + ".");
    return Optional.of(why.map(w -> problem.because(w.oneLine())).orElse(problem));
  }

  /// The event that a request of this kind is for the state machine; empty when it changes nothing:
  /// it asks for what is already so, or isn't about the state.
  static Optional<SandboxEvent> request(OperationKind kind, SandboxState state) {
    if (isDone(kind, state)) {
      return Optional.empty();
    }
    return switch (kind) {
      case PAUSE -> Optional.of(SandboxEvent.PAUSE_REQUESTED);
      case SUSPEND -> Optional.of(SandboxEvent.SUSPEND_REQUESTED);
      case WAKE -> Optional.of(SandboxEvent.WAKE_REQUESTED);
      case CREATE, FORK, SNAPSHOT, DELETE, TEMPLATE_BUILD -> Optional.empty();
    };
  }

  /// Whether a request of this kind has nothing to do in this state.
  static boolean isDone(OperationKind kind, SandboxState state) {
    return switch (kind) {
      case PAUSE -> state == SandboxState.PAUSED;
      case SUSPEND -> state == SandboxState.SUSPENDED;
      case WAKE -> state == SandboxState.RUNNING;
      case CREATE, FORK, SNAPSHOT, DELETE, TEMPLATE_BUILD -> false;
    };
  }
}
