package dev.space.core.sandbox;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.node.LaunchSpec;
import dev.space.core.node.NodeRuntime.Recovered;
import dev.space.core.operation.Entry;
import dev.space.core.operation.Ledger;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationKind;
import dev.space.core.operation.OperationState;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Brings records and the node together after a stop of the service at any instruction. The node
/// says what is really there; what was begun is finished when that shows it was done, and rolled
/// back otherwise; what had not begun is done now.
final class SandboxRecovery {

  private static final Logger LOG = LoggerFactory.getLogger(SandboxRecovery.class);

  private static final Set<SandboxState> ALIVE =
      EnumSet.of(
          SandboxState.CREATING,
          SandboxState.RUNNING,
          SandboxState.PAUSING,
          SandboxState.PAUSED,
          SandboxState.RESUMING,
          SandboxState.SUSPENDING,
          SandboxState.SUSPENDED,
          SandboxState.WAKING);

  private final Ledger ledger;
  private final NodeWork nodes;
  private final SandboxMoves moves;
  private final LaneWork work;
  private final SandboxDeletes deletes;

  SandboxRecovery(
      Ledger ledger, NodeWork nodes, SandboxMoves moves, LaneWork work, SandboxDeletes deletes) {
    this.ledger = ledger;
    this.nodes = nodes;
    this.moves = moves;
    this.work = work;
    this.deletes = deletes;
  }

  /// Where the node found a sandbox.
  private enum Found {
    RUNNING,
    PAUSED,
    SUSPENDED,
    NOWHERE
  }

  void run() {
    List<Sandbox> alive = ledger.store().read(tx -> tx.sandboxes().inStates(ALIVE));
    Set<LaunchSpec> specs = new HashSet<>();
    alive.forEach(s -> specs.add(nodes.spec(s, s.state() == SandboxState.CREATING)));
    Recovered recovered = nodes.node().recover(specs);
    List<Operation> open = ledger.store().read(tx -> tx.operations().open());
    Map<String, Operation> begun =
        open.stream()
            .filter(o -> o.state() == OperationState.RUNNING)
            .filter(o -> o.sandboxId().isPresent() && o.kind() != OperationKind.DELETE)
            .collect(Collectors.toMap(o -> o.sandboxId().orElseThrow(), o -> o, (a, b) -> a));
    for (Sandbox s : alive) {
      reconcile(s, found(recovered, s.id()), Optional.ofNullable(begun.get(s.id())));
    }
    open.stream().filter(o -> o.state() == OperationState.RUNNING).forEach(this::endWhatIsNoState);
    nodes.sweepSnapshots();
    resumeDeletes();
    // In the order of their records, so that each lane goes on as it would have.
    open.stream()
        .filter(o -> o.state() == OperationState.PENDING && o.sandboxId().isPresent())
        .forEach(work::submit);
    if (!alive.isEmpty() || !open.isEmpty()) {
      LOG.info(
          "recovered {} sandboxes ({} running, {} paused, {} suspended) and {} open operations",
          alive.size(),
          recovered.running().size(),
          recovered.paused().size(),
          recovered.suspended().size(),
          open.size());
    }
  }

  private static Found found(Recovered recovered, String id) {
    if (recovered.running().contains(id)) {
      return Found.RUNNING;
    }
    if (recovered.paused().contains(id)) {
      return Found.PAUSED;
    }
    return recovered.suspended().contains(id) ? Found.SUSPENDED : Found.NOWHERE;
  }

  private static Problem stopped() {
    return Problem.of(ErrorCode.CANCELLED, "the service stopped while this was being done")
        .remedy("Repeat the call.");
  }

  private static Problem lost() {
    return Problem.of(ErrorCode.SANDBOX_DIED, "its VM was gone when the service was started again");
  }

  private void reconcile(Sandbox s, Found found, Optional<Operation> begun) {
    switch (s.state()) {
      case CREATING -> {
        boolean runs = found == Found.RUNNING;
        if (!runs) {
          nodes.remove(s.id());
        }
        ends(s, begun, runs, SandboxEvent.CREATE_SUCCEEDED, SandboxEvent.CREATE_FAILED);
      }
      case RUNNING -> expect(s, found, Found.RUNNING);
      case PAUSED -> expect(s, found, Found.PAUSED);
      case SUSPENDED -> expect(s, found, Found.SUSPENDED);
      case PAUSING -> {
        switch (found) {
          case PAUSED, RUNNING ->
              ends(
                  s,
                  begun,
                  found == Found.PAUSED,
                  SandboxEvent.PAUSE_SUCCEEDED,
                  SandboxEvent.PAUSE_FAILED);
          case SUSPENDED, NOWHERE -> died(s, begun);
        }
      }
      case RESUMING -> {
        switch (found) {
          case RUNNING, PAUSED ->
              ends(
                  s,
                  begun,
                  found == Found.RUNNING,
                  SandboxEvent.WAKE_SUCCEEDED,
                  SandboxEvent.WAKE_FAILED);
          case SUSPENDED, NOWHERE -> died(s, begun);
        }
      }
      case SUSPENDING -> suspending(s, found, begun);
      case WAKING -> waking(s, found, begun);
      case STOPPED, FAILED, DELETING, DELETED -> {}
    }
  }

  private void suspending(Sandbox s, Found found, Optional<Operation> begun) {
    switch (found) {
      case SUSPENDED ->
          ends(s, begun, true, SandboxEvent.SUSPEND_SUCCEEDED, SandboxEvent.SUSPEND_SUCCEEDED);
      case RUNNING, PAUSED -> {
        boolean wasPaused =
            begun
                .map(o -> ledger.store().read(tx -> tx.operations().intent(o.id())))
                .map(intent -> Boolean.parseBoolean(intent.get(LaneWork.WAS_PAUSED)))
                .orElse(false);
        if (!adjust(s, found, wasPaused ? Found.PAUSED : Found.RUNNING)) {
          died(s, begun);
          return;
        }
        ends(
            s,
            begun,
            false,
            SandboxEvent.SUSPEND_SUCCEEDED,
            wasPaused
                ? SandboxEvent.SUSPEND_ROLLED_BACK_TO_PAUSED
                : SandboxEvent.SUSPEND_ROLLED_BACK_TO_RUNNING);
      }
      case NOWHERE -> died(s, begun);
    }
  }

  private void waking(Sandbox s, Found found, Optional<Operation> begun) {
    boolean runs =
        found == Found.RUNNING || (found == Found.PAUSED && adjust(s, Found.PAUSED, Found.RUNNING));
    ends(s, begun, runs, SandboxEvent.WAKE_SUCCEEDED, SandboxEvent.WAKE_FAILED);
    if (!runs && found != Found.SUSPENDED) {
      fail(s.id());
    }
  }

  /// A sandbox whose state nobody was changing. A snapshot may have been, with its VM paused.
  private void expect(Sandbox s, Found found, Found expected) {
    if (found != expected && !adjust(s, found, expected)) {
      fail(s.id());
    }
  }

  /// Brings a VM that is there from one state to the other and says whether it is there.
  private boolean adjust(Sandbox s, Found is, Found wanted) {
    if (is == wanted) {
      return true;
    }
    Optional<Problem> failure;
    if (is == Found.PAUSED && wanted == Found.RUNNING) {
      failure = nodes.attempt(() -> nodes.node().resume(s.id(), nodes.spec(s, false)));
    } else if (is == Found.RUNNING && wanted == Found.PAUSED) {
      failure = nodes.attempt(() -> nodes.node().pause(s.id()));
    } else {
      failure = Optional.of(lost());
    }
    failure.ifPresent(p -> LOG.warn("sandbox {} is not {}: {}", s.id(), wanted, p.oneLine()));
    return failure.isEmpty();
  }

  private void ends(
      Sandbox s,
      Optional<Operation> begun,
      boolean done,
      SandboxEvent success,
      SandboxEvent otherwise) {
    Optional<Problem> failure = done ? Optional.empty() : Optional.of(stopped());
    List<String> results = s.state() == SandboxState.CREATING ? List.of(s.id()) : List.of();
    ledger.persist(
        entry -> {
          if (begun.isPresent()) {
            return work.settle(entry, begun.get().id(), failure, success, otherwise, results);
          }
          Sandbox current = entry.tx().sandboxes().find(s.id()).orElseThrow();
          if (current.state() == SandboxState.CREATING) {
            // A copy of a fork; the fork is ended by what its copies have become.
            return work.forks().settleCopy(entry, s.id(), Optional.empty(), failure);
          }
          moves.move(entry, current, done ? success : otherwise, Optional.empty(), by(begun));
          return true;
        });
  }

  private void died(Sandbox s, Optional<Operation> begun) {
    ledger.persist(
        entry -> {
          Sandbox current = entry.tx().sandboxes().find(s.id()).orElseThrow();
          moves.move(entry, current, SandboxEvent.GUEST_FAILED, Optional.of(lost()), by(begun));
          begun
              .flatMap(o -> entry.tx().operations().find(o.id()))
              .filter(o -> !o.state().isTerminal())
              .ifPresent(o -> entry.fail(o, stopped().because(lost().detail()), List.of()));
          return true;
        });
  }

  private static Optional<String> by(Optional<Operation> operation) {
    return operation.map(Operation::id);
  }

  private void fail(String id) {
    ledger.persist(
        entry ->
            entry
                .tx()
                .sandboxes()
                .find(id)
                .filter(
                    s -> SandboxTransitions.next(s.state(), SandboxEvent.GUEST_FAILED).isPresent())
                .map(
                    s ->
                        moves.move(
                            entry,
                            s,
                            SandboxEvent.GUEST_FAILED,
                            Optional.of(lost()),
                            Optional.empty())));
  }

  /// Ends what was begun and isn't told by the sandbox's state.
  private void endWhatIsNoState(Operation o) {
    Map<String, String> intent = ledger.store().read(tx -> tx.operations().intent(o.id()));
    switch (o.kind()) {
      case FORK -> {
        List<String> copies = ForkWork.copies(intent);
        boolean recorded =
            ledger
                .store()
                .<Boolean>read(
                    tx -> copies.stream().anyMatch(id -> tx.sandboxes().find(id).isPresent()));
        if (recorded) {
          work.forks().finish(o.id(), copies, stopped().detail());
        } else {
          endAs(o, stopped());
        }
      }
      // What a snapshot left is swept as unused.
      case SNAPSHOT, CREATE, PAUSE, SUSPEND, WAKE -> endAs(o, stopped());
      case DELETE, TEMPLATE_BUILD -> {}
    }
  }

  private void endAs(Operation o, Problem problem) {
    ledger.persist(
        entry -> {
          entry
              .tx()
              .operations()
              .find(o.id())
              .filter(current -> !current.state().isTerminal())
              .ifPresent(current -> entry.fail(current, problem, List.of()));
          return true;
        });
  }

  private void resumeDeletes() {
    List<Sandbox> deleting =
        ledger.store().read(tx -> tx.sandboxes().inStates(EnumSet.of(SandboxState.DELETING)));
    List<Operation> starting = new ArrayList<>();
    for (Sandbox s : deleting) {
      starting.add(ledger.persist(entry -> deleteOf(entry, s)));
    }
    starting.forEach(o -> deletes.start(o, o.sandboxId().orElseThrow(), List.of()));
  }

  private static Operation deleteOf(Entry entry, Sandbox s) {
    return entry
        .tx()
        .operations()
        .latest(s.id(), OperationKind.DELETE)
        .filter(o -> !o.state().isTerminal())
        .orElseGet(
            () -> entry.begin(s.project(), OperationKind.DELETE, Optional.of(s.id()), Map.of()));
  }
}
