package dev.space.core.sandbox;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.operation.Ledger;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationKind;
import dev.space.core.operation.OperationState;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/// Brings a sandbox to where it can be used, for one who wants to use it.
final class SandboxAwaking {

  /// How long a use waits for a sandbox.
  static final Duration WAIT_MAX = Duration.ofMinutes(2);

  private final Ledger ledger;
  private final Supplier<Operation> wake;

  /// @param wake asks for a wake
  SandboxAwaking(Ledger ledger, Supplier<Operation> wake) {
    this.ledger = ledger;
    this.wake = wake;
  }

  /// Waits until it runs, waking it when it has `autoWake`.
  Sandbox awake(Supplier<Sandbox> look) {
    long end = System.nanoTime() + WAIT_MAX.toNanos();
    while (true) {
      Duration left = Duration.ofNanos(end - System.nanoTime());
      Sandbox s = look.get();
      if (s.state() == SandboxState.RUNNING) {
        return s;
      }
      if (left.isNegative()) {
        throw Problem.of(
                ErrorCode.DEADLINE_EXCEEDED,
                "the sandbox did not run within %d seconds".formatted(WAIT_MAX.toSeconds()))
            .because("it is " + s.state().wire())
            .remedy("Look at its open operations, and try again when they are over.")
            .toException();
      }
      switch (s.state()) {
        case CREATING, RESUMING, WAKING -> awaitMove(s, left, look);
        case PAUSING, PAUSED, SUSPENDING, SUSPENDED -> {
          if (!s.autoWake()) {
            throw notRunning(s, "Wake it first, or set auto_wake.");
          }
          wakeUp(s, left);
        }
        case STOPPED, FAILED, DELETING, DELETED ->
            throw notRunning(s, "Delete it and create another.");
        case RUNNING -> throw new IllegalStateException("seen before");
      }
      if (Thread.currentThread().isInterrupted()) {
        throw Problem.of(ErrorCode.CANCELLED, "the call was given up").toException();
      }
    }
  }

  private void awaitMove(Sandbox seen, Duration wait, Supplier<Sandbox> look) {
    ledger.waiters().await(seen.id(), wait, () -> look.get().state() != seen.state());
  }

  private void wakeUp(Sandbox s, Duration wait) {
    List<Operation> open = ledger.store().read(tx -> tx.operations().open(s.id()));
    Operation waking =
        !open.isEmpty() && open.getLast().kind() == OperationKind.WAKE
            ? open.getLast()
            : wake.get();
    ledger
        .waiters()
        .await(waking.id(), wait, () -> current(waking).filter(SandboxAwaking::isOpen).isEmpty());
    current(waking)
        .filter(o -> o.state() == OperationState.FAILED || o.state() == OperationState.CANCELLED)
        .flatMap(Operation::error)
        .ifPresent(
            problem -> {
              throw problem.toException();
            });
  }

  private Optional<Operation> current(Operation operation) {
    return ledger.store().read(tx -> tx.operations().find(operation.id()));
  }

  private static boolean isOpen(Operation operation) {
    return !operation.state().isTerminal();
  }

  private static SpaceException notRunning(Sandbox s, String remedy) {
    Problem problem =
        Problem.of(ErrorCode.ILLEGAL_STATE, "the sandbox is " + s.state().wire() + ", not running")
            .remedy(remedy);
    return s.cause().map(c -> problem.because(c.oneLine())).orElse(problem).toException();
  }
}
