package dev.space.core.sandbox;

import dev.space.core.operation.Ledger;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.EnumSet;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/// Keeps the timers of sandboxes in step with their records. A timer only says when to look: what
/// happens is decided by the record as it is then, in the transaction that does it.
final class SandboxExpiry implements SandboxListener, AutoCloseable {

  private static final Duration HOUSEKEEPING_EVERY = Duration.ofHours(1);
  private static final Timers.Key HOUSEKEEPING =
      new Timers.Key("housekeeping", Timers.Kind.HOUSEKEEPING);

  private final Ledger ledger;
  private final SandboxUses uses;
  private final Timers timers;
  private final Instant started;
  private final ConcurrentHashMap<String, Long> revs = new ConcurrentHashMap<>();

  SandboxExpiry(Ledger ledger, SandboxUses uses, InstantSource clock) {
    this.ledger = ledger;
    this.uses = uses;
    this.timers = new Timers(clock);
    this.started = ledger.now();
  }

  /// Arms the timers of every sandbox in the store.
  ///
  /// @param timeouts does what is due
  void start(SandboxTimeouts timeouts) {
    ledger
        .store()
        .read(
            tx ->
                tx.sandboxes()
                    .inStates(
                        EnumSet.complementOf(
                            EnumSet.of(SandboxState.DELETING, SandboxState.DELETED))))
        .forEach(sandbox -> changed(sandbox.state(), sandbox));
    timers.arm(HOUSEKEEPING, ledger.now().plus(HOUSEKEEPING_EVERY));
    timers.start(key -> fire(key, timeouts));
  }

  @Override
  public void changed(SandboxState before, Sandbox now) {
    if (now.state() == SandboxState.DELETING || now.state() == SandboxState.DELETED) {
      timers.disarm(new Timers.Key(now.id(), Timers.Kind.EXPIRY));
      timers.disarm(new Timers.Key(now.id(), Timers.Kind.IDLE));
      if (now.state() == SandboxState.DELETED) {
        uses.forget(now.id());
        revs.remove(now.id());
      } else {
        revs.put(now.id(), Long.MAX_VALUE);
      }
      return;
    }
    // Under the map's lock, so that an older record never undoes what a newer one armed.
    revs.compute(
        now.id(),
        (id, newest) -> {
          if (newest != null && newest > now.rev()) {
            return newest;
          }
          arm(now);
          return now.rev();
        });
  }

  private void arm(Sandbox s) {
    set(new Timers.Key(s.id(), Timers.Kind.EXPIRY), s.expiresAt());
    set(new Timers.Key(s.id(), Timers.Kind.IDLE), idleAt(s));
  }

  private void set(Timers.Key key, Optional<Instant> at) {
    at.ifPresentOrElse(t -> timers.arm(key, t), () -> timers.disarm(key));
  }

  /// When a sandbox will have been idle for long enough if nobody uses it; empty while it is in use
  /// or doesn't run. Time in which the service was down doesn't count.
  Optional<Instant> idleAt(Sandbox s) {
    if (s.state() != SandboxState.RUNNING || uses.inUse(s.id())) {
      return Optional.empty();
    }
    return s.idleTimeout()
        .map(
            idle -> {
              Instant since = s.stateChangedAt().isAfter(started) ? s.stateChangedAt() : started;
              Instant used = uses.lastUsed(s.id()).filter(u -> u.isAfter(since)).orElse(since);
              return used.plus(idle);
            });
  }

  /// Sets the timers again by the record as it is.
  void rearm(String sandboxId) {
    ledger
        .store()
        .<Optional<Sandbox>>read(tx -> tx.sandboxes().find(sandboxId))
        .ifPresent(sandbox -> changed(sandbox.state(), sandbox));
  }

  /// Looks at the clock again now, because it was moved.
  void poke() {
    timers.poke();
  }

  private void fire(Timers.Key key, SandboxTimeouts actions) {
    if (ledger.isClosed()) {
      return;
    }
    switch (key.kind()) {
      case EXPIRY -> {
        try {
          actions.expire(key.id());
        } catch (RuntimeException e) {
          // The store may be full; the sandbox is still due.
          timers.arm(key, ledger.now().plusSeconds(1));
          throw e;
        }
      }
      case IDLE -> {
        try {
          actions.idle(key.id());
        } catch (RuntimeException e) {
          timers.arm(key, ledger.now().plusSeconds(1));
          throw e;
        }
      }
      case HOUSEKEEPING -> {
        timers.arm(HOUSEKEEPING, ledger.now().plus(HOUSEKEEPING_EVERY));
        actions.housekeeping();
      }
    }
  }

  @Override
  public void close() {
    timers.close();
  }
}
