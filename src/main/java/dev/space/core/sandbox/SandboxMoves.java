package dev.space.core.sandbox;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.operation.Entry;
import dev.space.core.operation.Operation;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The one way in which a sandbox changes its state.
final class SandboxMoves {

  /// How long a create that failed stays readable before it is deleted.
  static final Duration FAILED_CREATE_KEPT = Duration.ofHours(1);

  /// When a suspend that its timeout asked for is tried again after it failed.
  static final Duration EXPIRY_RETRY = Duration.ofMinutes(1);

  private static final Logger LOG = LoggerFactory.getLogger(SandboxMoves.class);

  private final List<SandboxListener> listeners = new CopyOnWriteArrayList<>();

  void listen(SandboxListener listener) {
    listeners.add(listener);
  }

  /// Records a new sandbox.
  Sandbox insert(Entry entry, Sandbox sandbox, Operation operation) {
    Sandbox inserted = entry.tx().sandboxes().insert(sandbox);
    tell(entry, SandboxState.CREATING, inserted, Optional.of(operation.id()), true);
    return inserted;
  }

  /// Records what an event makes of a sandbox.
  ///
  /// @throws dev.space.core.error.SpaceException ILLEGAL_STATE when the event is illegal here
  Sandbox move(
      Entry entry,
      Sandbox sandbox,
      SandboxEvent event,
      Optional<Problem> cause,
      Optional<String> operationId) {
    SandboxState next =
        SandboxTransitions.next(sandbox.state(), event)
            .orElseThrow(
                () ->
                    Problem.of(
                            ErrorCode.ILLEGAL_STATE,
                            event + " can't happen to a sandbox that is " + sandbox.state().wire())
                        .toException());
    if (next == sandbox.state()) {
      return sandbox;
    }
    Sandbox moved = sandbox.moved(next, cause, entry.now());
    Sandbox updated = entry.tx().sandboxes().update(expiry(sandbox.state(), moved, entry.now()));
    tell(entry, sandbox.state(), updated, operationId, true);
    return updated;
  }

  /// Records a change that leaves the state as it is.
  Sandbox amend(Entry entry, Sandbox changed) {
    Sandbox updated = entry.tx().sandboxes().update(changed);
    tell(entry, updated.state(), updated, Optional.empty(), false);
    return updated;
  }

  /// What a move does to the time at which the sandbox runs out.
  private static Sandbox expiry(SandboxState before, Sandbox moved, Instant now) {
    return switch (moved.state()) {
      case FAILED ->
          before == SandboxState.CREATING
              ? moved.expiring(
                  moved.timeout(), Optional.of(now.plus(FAILED_CREATE_KEPT)), OnTimeout.DELETE)
              : moved;
      case RUNNING, PAUSED -> {
        boolean ranOut = moved.timeout().isPresent() && moved.expiresAt().isEmpty();
        if (!ranOut || before == SandboxState.PAUSING) {
          yield moved;
        }
        Duration full = moved.timeout().orElseThrow();
        boolean suspendFailed = before == SandboxState.SUSPENDING;
        Duration next = suspendFailed && full.compareTo(EXPIRY_RETRY) > 0 ? EXPIRY_RETRY : full;
        yield moved.expiring(Optional.of(now.plus(next)));
      }
      case CREATING, PAUSING, RESUMING, SUSPENDING, SUSPENDED, WAKING, STOPPED, DELETING, DELETED ->
          moved;
    };
  }

  private void tell(
      Entry entry,
      SandboxState before,
      Sandbox now,
      Optional<String> operationId,
      boolean stateChanged) {
    if (stateChanged) {
      Map<String, String> data = new HashMap<>();
      data.put("template", now.template());
      now.cause().ifPresent(problem -> data.put("code", problem.code().wire()));
      entry.event(
          now.project(), "sandbox." + now.state().wire(), Optional.of(now.id()), operationId, data);
    } else {
      entry.event(
          now.project(), "sandbox.updated", Optional.of(now.id()), Optional.empty(), Map.of());
    }
    entry.changed(now.id());
    entry.afterwards(
        () -> {
          for (SandboxListener listener : listeners) {
            try {
              listener.changed(before, now);
            } catch (RuntimeException e) {
              LOG.error("a listener failed on sandbox {}", now.id(), e);
            }
          }
        });
  }
}
