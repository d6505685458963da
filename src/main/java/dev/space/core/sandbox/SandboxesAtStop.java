package dev.space.core.sandbox;

import dev.space.core.access.Caller;
import dev.space.core.error.SpaceException;
import dev.space.core.operation.Ledger;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationKind;
import dev.space.core.operation.OperationState;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Suspends what has a VM when the service is stopped.
final class SandboxesAtStop {

  private static final Logger LOG = LoggerFactory.getLogger(SandboxesAtStop.class);

  /// Each suspend writes to the disk; more of them at once are not done sooner.
  private static final int AT_ONCE = 4;

  private static final Set<SandboxState> WITH_VM =
      EnumSet.of(
          SandboxState.CREATING,
          SandboxState.RUNNING,
          SandboxState.PAUSING,
          SandboxState.PAUSED,
          SandboxState.RESUMING,
          SandboxState.WAKING);

  private final Ledger ledger;
  private final SandboxRequests requests;

  SandboxesAtStop(Ledger ledger, SandboxRequests requests) {
    this.ledger = ledger;
    this.requests = requests;
  }

  void suspend(Duration deadline) {
    long end = System.nanoTime() + deadline.toNanos();
    List<Sandbox> all = ledger.store().read(tx -> tx.sandboxes().inStates(WITH_VM));
    var done = new AtomicInteger();
    var turns = new Semaphore(AT_ONCE);
    try (ExecutorService each = Executors.newVirtualThreadPerTaskExecutor()) {
      for (Sandbox sandbox : all) {
        each.execute(
            () -> {
              turns.acquireUninterruptibly();
              try {
                if (suspend(sandbox, end)) {
                  done.incrementAndGet();
                }
              } finally {
                turns.release();
              }
            });
      }
    }
    if (!all.isEmpty()) {
      LOG.info("suspended {} of {} sandboxes for the stop", done.get(), all.size());
    }
  }

  private boolean suspend(Sandbox sandbox, long end) {
    Duration left = Duration.ofNanos(end - System.nanoTime());
    if (left.isNegative()) {
      return false;
    }
    try {
      Caller owner = new Caller(sandbox.project(), "stop", "stop-" + sandbox.id());
      Operation operation =
          requests
              .request(
                  owner,
                  sandbox.id(),
                  OperationKind.SUSPEND,
                  Map.of(),
                  Optional.empty(),
                  (entry, current) -> Optional.of(current))
              .orElseThrow();
      ledger.waiters().await(operation.id(), left, () -> current(operation).state().isTerminal());
      Operation ended = current(operation);
      ended.error().ifPresent(p -> LOG.warn("sandbox {} is kept: {}", sandbox.id(), p.oneLine()));
      return ended.state() == OperationState.SUCCEEDED;
    } catch (SpaceException e) {
      LOG.warn("sandbox {} is kept: {}", sandbox.id(), e.getMessage());
      return false;
    }
  }

  private Operation current(Operation operation) {
    return ledger
        .store()
        .<Optional<Operation>>read(tx -> tx.operations().find(operation.id()))
        .orElse(operation);
  }
}
