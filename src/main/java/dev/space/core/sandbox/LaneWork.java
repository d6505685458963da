package dev.space.core.sandbox;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.operation.Entry;
import dev.space.core.operation.Lanes;
import dev.space.core.operation.Ledger;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationKind;
import dev.space.core.operation.OperationState;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// What an operation does when its turn comes in the sandbox's lane. Every path ends in one
/// transaction that moves the sandbox and ends the operation, unless a delete did that first.
final class LaneWork {

  /// Intent of suspends: whether the sandbox was paused before.
  static final String WAS_PAUSED = "was_paused";

  /// Intent of suspends and wakes: whether the memory is saved, or gone on with; absent means yes.
  private static final String MEMORY = "memory";

  private final Ledger ledger;
  private final Lanes lanes;
  private final NodeWork nodes;
  private final SandboxMoves moves;
  private final SnapshotWork snapshots;
  private final ForkWork forks;

  LaneWork(Ledger ledger, Lanes lanes, NodeWork nodes, SandboxMoves moves) {
    this.ledger = ledger;
    this.lanes = lanes;
    this.nodes = nodes;
    this.moves = moves;
    this.snapshots = new SnapshotWork(ledger, nodes);
    this.forks = new ForkWork(ledger, lanes, nodes, moves, snapshots);
  }

  /// The intent of a suspend or wake.
  static Map<String, String> memory(boolean kept) {
    return kept ? Map.of() : Map.of(MEMORY, "false");
  }

  private static boolean keepsMemory(Map<String, String> intent) {
    return Boolean.parseBoolean(intent.getOrDefault(MEMORY, "true"));
  }

  ForkWork forks() {
    return forks;
  }

  /// Starts an operation in the transaction at hand, or ends it at once when there is nothing to do
  /// or its time is over.
  Operation begin(Entry entry, Sandbox sandbox, Operation operation) {
    OperationKind kind = operation.kind();
    Optional<Problem> refusal = refusal(kind, sandbox);
    if (refusal.isPresent()) {
      return entry.fail(operation, refusal.get(), List.of());
    }
    if (SandboxRules.isDone(kind, sandbox.state())) {
      return entry.succeed(operation, List.of());
    }
    Sandbox before = sandbox;
    if (kind == OperationKind.SUSPEND) {
      Map<String, String> intent = new HashMap<>(entry.tx().operations().intent(operation.id()));
      intent.put(WAS_PAUSED, String.valueOf(sandbox.state() == SandboxState.PAUSED));
      entry.tx().operations().intend(operation.id(), intent);
      before = sandbox.saving(!keepsMemory(intent));
    }
    if (kind == OperationKind.SNAPSHOT || kind == OperationKind.FORK) {
      // Known before it is made, so that a crash leaves nothing that nobody knows.
      SnapshotWork.record(entry, sandbox, entry.tx().operations().intent(operation.id()), 0, true);
    }
    Optional<SandboxEvent> event = SandboxRules.request(kind, sandbox.state());
    if (event.isPresent()) {
      moves.move(entry, before, event.get(), Optional.empty(), Optional.of(operation.id()));
    }
    return entry.start(operation);
  }

  private static Optional<Problem> refusal(OperationKind kind, Sandbox sandbox) {
    return SandboxRules.refusal(kind, sandbox.state(), sandbox.cause());
  }

  /// Puts an operation at the end of the sandbox's lane.
  void submit(Operation operation) {
    String sandboxId = operation.sandboxId().orElseThrow();
    lanes.submit(sandboxId, job -> run(job, operation.id(), sandboxId));
  }

  private record Turn(Operation operation, Sandbox sandbox, Map<String, String> intent) {}

  private Turn turn(Entry entry, String operationId, String sandboxId) {
    Operation operation = entry.tx().operations().find(operationId).orElseThrow();
    Sandbox sandbox = entry.tx().sandboxes().find(sandboxId).orElseThrow();
    if (operation.state() == OperationState.PENDING) {
      operation = begin(entry, sandbox, operation);
      sandbox = entry.tx().sandboxes().find(sandboxId).orElseThrow();
    }
    return new Turn(operation, sandbox, entry.tx().operations().intent(operationId));
  }

  private void run(Lanes.Job job, String operationId, String sandboxId) {
    Optional<Turn> begun =
        ledger
            .store()
            .read(
                tx ->
                    tx.operations()
                        .find(operationId)
                        .filter(o -> o.state() != OperationState.PENDING)
                        .map(
                            o ->
                                new Turn(
                                    o,
                                    tx.sandboxes().find(sandboxId).orElseThrow(),
                                    tx.operations().intent(operationId))));
    Turn turn = begun.orElseGet(() -> ledger.persist(entry -> turn(entry, operationId, sandboxId)));
    if (turn.operation().state().isTerminal()) {
      return;
    }
    try {
      work(job, turn);
    } finally {
      if (job.isPreempted()) {
        // The delete may have been faster than the call that this job was about to make.
        nodes.remove(sandboxId);
      }
    }
  }

  private void work(Lanes.Job job, Turn turn) {
    Sandbox s = turn.sandbox();
    Operation o = turn.operation();
    switch (o.kind()) {
      case CREATE -> create(job, o, s);
      case PAUSE ->
          settle(
              o,
              nodes.attempt(job, () -> nodes.node().pause(s.id())),
              SandboxEvent.PAUSE_SUCCEEDED,
              SandboxEvent.PAUSE_FAILED);
      case SUSPEND ->
          settle(
              o,
              nodes.attempt(job, () -> nodes.node().suspend(s.id(), keepsMemory(turn.intent()))),
              SandboxEvent.SUSPEND_SUCCEEDED,
              Boolean.parseBoolean(turn.intent().getOrDefault(WAS_PAUSED, "false"))
                  ? SandboxEvent.SUSPEND_ROLLED_BACK_TO_PAUSED
                  : SandboxEvent.SUSPEND_ROLLED_BACK_TO_RUNNING);
      case WAKE -> wake(job, o, s, keepsMemory(turn.intent()));
      case SNAPSHOT -> snapshot(job, o, s, turn.intent());
      case FORK -> forks.fork(job, o, s, turn.intent());
      case DELETE, TEMPLATE_BUILD ->
          throw new IllegalStateException(o.kind() + " has no place in a lane");
    }
  }

  private void create(Lanes.Job job, Operation o, Sandbox s) {
    Optional<Problem> failure =
        nodes.attempt(
            job,
            () -> nodes.node().create(nodes.spec(s, true), step -> ledger.progress(o.id(), step)));
    if (failure.isPresent()) {
      nodes.remove(s.id());
    }
    settle(o, failure, SandboxEvent.CREATE_SUCCEEDED, SandboxEvent.CREATE_FAILED, List.of(s.id()));
  }

  private void wake(Lanes.Job job, Operation o, Sandbox s, boolean memory) {
    boolean resident = s.state() == SandboxState.RESUMING;
    settle(
        o,
        nodes.attempt(
            job,
            () -> {
              if (resident) {
                nodes.node().resume(s.id(), nodes.spec(s, false));
              } else {
                nodes.node().wake(s.id(), nodes.spec(s, false), memory);
              }
            }),
        SandboxEvent.WAKE_SUCCEEDED,
        SandboxEvent.WAKE_FAILED);
  }

  private void snapshot(Lanes.Job job, Operation o, Sandbox s, Map<String, String> intent) {
    String snapshotId = SnapshotWork.id(intent);
    snapshots.take(
        job,
        o,
        s,
        intent,
        false,
        (entry, current) -> {
          entry.event(
              s.project(),
              "snapshot.created",
              Optional.of(s.id()),
              Optional.of(o.id()),
              Map.of("snapshot", snapshotId));
          entry.succeed(current, List.of(snapshotId));
        });
  }

  private void settle(
      Operation o, Optional<Problem> failure, SandboxEvent success, SandboxEvent otherwise) {
    settle(o, failure, success, otherwise, List.of());
  }

  private void settle(
      Operation o,
      Optional<Problem> failure,
      SandboxEvent success,
      SandboxEvent otherwise,
      List<String> results) {
    ledger.persist(entry -> settle(entry, o.id(), failure, success, otherwise, results));
  }

  /// Ends an operation with what the node made of it. When the sandbox met its end meanwhile, the
  /// operation fails with that as its cause, whatever the node said.
  boolean settle(
      Entry entry,
      String operationId,
      Optional<Problem> failure,
      SandboxEvent success,
      SandboxEvent otherwise,
      List<String> results) {
    Operation o = entry.tx().operations().find(operationId).orElseThrow();
    if (o.state().isTerminal()) {
      return false;
    }
    Sandbox s = entry.tx().sandboxes().find(o.sandboxId().orElseThrow()).orElseThrow();
    SandboxEvent event = failure.isPresent() ? otherwise : success;
    if (SandboxTransitions.next(s.state(), event).isEmpty()) {
      Problem died =
          Problem.of(
              ErrorCode.SANDBOX_DIED,
              "the sandbox became " + s.state().wire() + " while this was being done");
      entry.fail(o, s.cause().map(c -> died.because(c.oneLine())).orElse(died), List.of());
      return true;
    }
    Optional<Problem> cause =
        event == SandboxEvent.CREATE_FAILED ? failure : Optional.<Problem>empty();
    moves.move(entry, s, event, cause, Optional.of(o.id()));
    if (failure.isPresent()) {
      entry.fail(o, failure.get(), List.of());
    } else {
      entry.succeed(o, results);
    }
    return true;
  }
}
