package dev.space.core.sandbox;

import dev.space.core.access.Caller;
import dev.space.core.operation.Entry;
import dev.space.core.operation.Idempotency;
import dev.space.core.operation.Ledger;
import dev.space.core.operation.OperationKind;
import java.time.Instant;
import java.util.Optional;
import java.util.function.BiFunction;

/// What timers do. They go through the same code as calls; whether something is really due is
/// decided in the transaction that does it, so an extension that came first wins.
final class SandboxTimeouts {

  private final Ledger ledger;
  private final SandboxExpiry expiry;
  private final SandboxRequests requests;
  private final SandboxDeletes deletes;
  private final SandboxMoves moves;
  private final NodeWork nodes;

  SandboxTimeouts(
      Ledger ledger,
      SandboxExpiry expiry,
      SandboxRequests requests,
      SandboxDeletes deletes,
      SandboxMoves moves,
      NodeWork nodes) {
    this.ledger = ledger;
    this.expiry = expiry;
    this.requests = requests;
    this.deletes = deletes;
    this.moves = moves;
    this.nodes = nodes;
  }

  /// Does what the timeout asks for, if it has run out.
  void expire(String id) {
    act(id, SandboxTimeouts::hasExpired, this::expired);
  }

  /// Does what the idle timeout asks for, if it has run out.
  void idle(String id) {
    act(id, this::isIdle, (entry, s) -> isIdle(entry, s) ? Optional.of(s) : Optional.empty());
  }

  private interface Due {
    boolean test(Entry entry, Sandbox sandbox);
  }

  private void act(String id, Due due, BiFunction<Entry, Sandbox, Optional<Sandbox>> suspendable) {
    Optional<Sandbox> found = ledger.store().<Optional<Sandbox>>read(tx -> tx.sandboxes().find(id));
    if (found.filter(s -> s.state() != SandboxState.DELETED).isEmpty()) {
      return;
    }
    Caller owner = new Caller(found.get().project(), "timer", "timer-" + id);
    boolean acted =
        switch (found.get().onTimeout()) {
          case DELETE -> deletes.delete(owner, id, Optional.empty(), due::test).isPresent();
          case SUSPEND, SUSPEND_DISK ->
              requests
                  .request(
                      owner,
                      id,
                      OperationKind.SUSPEND,
                      LaneWork.memory(found.get().onTimeout() == OnTimeout.SUSPEND),
                      Optional.empty(),
                      suspendable)
                  .isPresent();
        };
    if (!acted) {
      expiry.rearm(id);
    }
  }

  private static boolean hasExpired(Entry entry, Sandbox s) {
    return s.expiresAt().filter(at -> !at.isAfter(entry.now())).isPresent();
  }

  /// Takes the time away that ran out; a wake gives the full one again. What can't be suspended, or
  /// needn't be, has nothing left to wait for.
  private Optional<Sandbox> expired(Entry entry, Sandbox s) {
    if (!hasExpired(entry, s) || s.state() == SandboxState.DELETING) {
      return Optional.empty();
    }
    Sandbox cleared = moves.amend(entry, s.expiring(Optional.empty()));
    SandboxState then = SandboxRules.projected(s.state(), entry.tx().operations().open(s.id()));
    boolean pointless =
        then == SandboxState.SUSPENDED
            || !SandboxRules.allowed(then).contains(OperationKind.SUSPEND);
    return pointless ? Optional.empty() : Optional.of(cleared);
  }

  private boolean isIdle(Entry entry, Sandbox s) {
    return expiry.idleAt(s).filter(at -> !at.isAfter(entry.now())).isPresent();
  }

  /// Forgets what is old.
  void housekeeping() {
    Instant now = ledger.now();
    ledger.write(
        entry -> {
          entry.tx().sandboxes().purgeDeletedBefore(now.minus(SandboxService.HISTORY_KEPT));
          entry.tx().operations().purgeEndedBefore(now.minus(SandboxService.HISTORY_KEPT));
          entry.tx().idempotency().purgeBefore(now.minus(Idempotency.KEPT));
          return true;
        });
    nodes.sweepSnapshots();
  }
}
