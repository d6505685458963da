package dev.space.core.sandbox;

import dev.space.core.Ids;
import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.node.NodeRuntime;
import dev.space.core.operation.IdempotencyKey;
import dev.space.core.operation.Lanes;
import dev.space.core.operation.Ledger;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationKind;
import dev.space.core.store.Page;
import dev.space.core.template.TemplateRef;
import java.time.Duration;
import java.time.InstantSource;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The life of sandboxes. Every change is an operation: recorded with its intent in one
/// transaction, answered at once, worked on in the sandbox's lane.
///
/// Call [#recover] once before anything else.
public final class SandboxService implements AutoCloseable {

  /// How long tombstones and ended operations are kept.
  public static final Duration HISTORY_KEPT = Duration.ofDays(7);

  private static final Logger LOG = LoggerFactory.getLogger(SandboxService.class);
  private static final Duration CLOSE_WAIT = Duration.ofSeconds(30);

  private final Ledger ledger;
  private final NodeRuntime node;
  private final Lanes lanes = new Lanes();
  private final SandboxMoves moves = new SandboxMoves();
  private final SandboxUses uses = new SandboxUses();
  private final NodeWork nodes;
  private final LaneWork work;
  private final SandboxDeletes deletes;
  private final SandboxCreates creates;
  private final SandboxRequests requests;
  private final SandboxExpiry expiry;
  private volatile boolean closing;

  /// @param clock the ledger's
  public SandboxService(Ledger ledger, NodeRuntime node, InstantSource clock) {
    this.ledger = ledger;
    this.node = node;
    this.nodes = new NodeWork(ledger, node);
    this.work = new LaneWork(ledger, lanes, nodes, moves);
    this.deletes = new SandboxDeletes(ledger, lanes, nodes, moves);
    this.creates = new SandboxCreates(node, moves);
    this.requests = new SandboxRequests(ledger, lanes, work);
    this.expiry = new SandboxExpiry(ledger, uses, clock);
    moves.listen(expiry);
  }

  /// Adds someone who is told of every change. Before [#recover].
  public void listen(SandboxListener listener) {
    moves.listen(listener);
  }

  /// Finishes or rolls back what a former daemon left, adopts what runs, and arms the timers.
  public void recover() {
    node.onExit(new GuestExits(ledger, lanes, nodes, moves)::exited);
    new SandboxRecovery(ledger, nodes, moves, work, deletes).run();
    expiry.start(new SandboxTimeouts(ledger, expiry, requests, deletes, moves, nodes));
  }

  /// Makes a sandbox; its id is the operation's `sandboxId` and, at the end, its result.
  ///
  /// @throws SpaceException INVALID_REQUEST, TEMPLATE_NOT_FOUND, SNAPSHOT_NOT_FOUND,
  ///   IDEMPOTENCY_MISMATCH, DISK_FULL; CAPACITY is an error of the operation
  public Operation create(Caller caller, CreateSandbox request, Optional<IdempotencyKey> key) {
    refuseWhenClosing();
    SandboxLimits.check(request);
    String id = ledger.ids().next(Ids.Kind.SANDBOX);
    return lanes.inOrder(
        id,
        () -> {
          Operation operation =
              ledger.write(
                  entry ->
                      SandboxRequests.answered(entry, caller, key)
                          .orElseGet(
                              () ->
                                  SandboxRequests.remember(
                                      entry,
                                      caller,
                                      key,
                                      creates.record(entry, caller, id, request))));
          if (operation.sandboxId().filter(id::equals).isPresent()) {
            work.submit(operation);
          }
          return operation;
        });
  }

  /// Stops the vCPUs; memory stays resident. Pausing what is paused succeeds.
  ///
  /// @throws SpaceException SANDBOX_NOT_FOUND, ILLEGAL_STATE, IDEMPOTENCY_MISMATCH
  public Operation pause(Caller caller, String id, Optional<IdempotencyKey> key) {
    return request(caller, id, OperationKind.PAUSE, Map.of(), key);
  }

  /// Saves memory and disk and ends the VM. Suspending what is suspended succeeds.
  ///
  /// @throws SpaceException SANDBOX_NOT_FOUND, ILLEGAL_STATE, IDEMPOTENCY_MISMATCH
  public Operation suspend(Caller caller, String id, Optional<IdempotencyKey> key) {
    return suspend(caller, id, true, key);
  }

  /// @param memory false saves the disk alone, so that a wake boots it. What is suspended already
  ///   stays as it was saved
  public Operation suspend(Caller caller, String id, boolean memory, Optional<IdempotencyKey> key) {
    return request(caller, id, OperationKind.SUSPEND, LaneWork.memory(memory), key);
  }

  /// Makes it run again from paused or suspended. Waking what runs succeeds.
  ///
  /// @throws SpaceException SANDBOX_NOT_FOUND, ILLEGAL_STATE, IDEMPOTENCY_MISMATCH
  public Operation wake(Caller caller, String id, Optional<IdempotencyKey> key) {
    return wake(caller, id, true, key);
  }

  /// @param memory false boots a suspended sandbox from its disk, whatever was saved; one that is
  ///   paused just runs on
  public Operation wake(Caller caller, String id, boolean memory, Optional<IdempotencyKey> key) {
    return request(caller, id, OperationKind.WAKE, LaneWork.memory(memory), key);
  }

  /// Makes `count` (1 to 100) running copies; their ids are the operation's results. When some
  /// could not be made the operation fails and its results are those that run.
  ///
  /// @throws SpaceException SANDBOX_NOT_FOUND, ILLEGAL_STATE, INVALID_REQUEST, IDEMPOTENCY_MISMATCH
  public Operation fork(Caller caller, String id, int count, Optional<IdempotencyKey> key) {
    SandboxLimits.copies(count);
    String copies =
        IntStream.range(0, count)
            .mapToObj(i -> ledger.ids().next(Ids.Kind.SANDBOX))
            .collect(Collectors.joining(","));
    String snapshot = ledger.ids().next(Ids.Kind.SNAPSHOT);
    return request(
        caller,
        id,
        OperationKind.FORK,
        Map.of(SnapshotWork.SNAPSHOT, snapshot, ForkWork.COPIES, copies),
        key);
  }

  /// Saves memory and disk as a source for creates; the sandbox stays as it is. The snapshot's id
  /// is the operation's result.
  ///
  /// @throws SpaceException SANDBOX_NOT_FOUND, ILLEGAL_STATE, INVALID_REQUEST, IDEMPOTENCY_MISMATCH
  public Operation snapshot(
      Caller caller, String id, Optional<String> name, Optional<IdempotencyKey> key) {
    SandboxLimits.snapshotName(name);
    String snapshot = ledger.ids().next(Ids.Kind.SNAPSHOT);
    Map<String, String> intent =
        name.map(n -> Map.of(SnapshotWork.SNAPSHOT, snapshot, SnapshotWork.NAME, n))
            .orElse(Map.of(SnapshotWork.SNAPSHOT, snapshot));
    return request(caller, id, OperationKind.SNAPSHOT, intent, key);
  }

  /// Deletes for good. Deleting what was deleted answers the first delete's operation.
  ///
  /// @throws SpaceException SANDBOX_NOT_FOUND, IDEMPOTENCY_MISMATCH
  public Operation delete(Caller caller, String id, Optional<IdempotencyKey> key) {
    refuseWhenClosing();
    return deletes.delete(caller, id, key, (entry, sandbox) -> true).orElseThrow();
  }

  private Operation request(
      Caller caller,
      String id,
      OperationKind kind,
      Map<String, String> intent,
      Optional<IdempotencyKey> key) {
    refuseWhenClosing();
    return requests
        .request(caller, id, kind, intent, key, (entry, sandbox) -> Optional.of(sandbox))
        .orElseThrow();
  }

  /// @throws SpaceException SANDBOX_NOT_FOUND, also for a tombstone and for another project's
  public Sandbox get(Caller caller, String id) {
    return ledger
        .store()
        .<Optional<Sandbox>>read(tx -> tx.sandboxes().find(caller.project(), id))
        .filter(s -> s.state() != SandboxState.DELETED)
        .orElseThrow(SandboxService::notFound);
  }

  /// Sandboxes, newest first.
  public Page<Sandbox> list(Caller caller, SandboxQuery query) {
    SandboxQuery normal =
        new SandboxQuery(
            query.states(),
            query.template().map(text -> TemplateRef.parse(text).toString()),
            query.metadata(),
            query.limit(),
            query.cursor());
    return ledger.store().read(tx -> tx.sandboxes().list(caller.project(), normal));
  }

  /// How many sandboxes of all projects there are in each state, for metrics.
  public Map<SandboxState, Long> counts() {
    return ledger.store().read(tx -> tx.sandboxes().counts());
  }

  /// Changes a sandbox's record at once.
  ///
  /// @throws SpaceException SANDBOX_NOT_FOUND, INVALID_REQUEST, ILLEGAL_STATE while it is being
  ///   deleted
  public Sandbox update(Caller caller, String id, UpdateSandbox change) {
    refuseWhenClosing();
    SandboxLimits.check(change);
    return ledger.write(
        entry -> {
          Sandbox s = SandboxRequests.find(entry, caller, id);
          if (s.state() == SandboxState.DELETING) {
            throw Problem.of(ErrorCode.ILLEGAL_STATE, "the sandbox is being deleted")
                .remedy("Create another.")
                .toException();
          }
          return moves.amend(entry, creates.changed(s, change, entry.now()));
        });
  }

  /// Opens a use of a sandbox: it is not idle until the use is closed. Waits for one that is being
  /// made, and wakes it first when it sleeps and has `autoWake`.
  ///
  /// @throws SpaceException ILLEGAL_STATE when it doesn't run and isn't woken, SANDBOX_NOT_FOUND,
  ///   DEADLINE_EXCEEDED, and whatever made the wake fail
  public Use use(Caller caller, String id) {
    refuseWhenClosing();
    Sandbox found = get(caller, id);
    uses.enter(id, ledger.now());
    try {
      Sandbox awake =
          found.state() == SandboxState.RUNNING
              ? found
              : new SandboxAwaking(ledger, () -> wake(caller, id, Optional.empty()))
                  .awake(() -> get(caller, id));
      return new OpenUse(awake);
    } catch (RuntimeException e) {
      left(id);
      throw e;
    }
  }

  private void left(String id) {
    if (uses.leave(id, ledger.now())) {
      try {
        expiry.rearm(id);
      } catch (SpaceException e) {
        LOG.debug("the idle timer of {} is not armed", id, e);
      }
    }
  }

  /// A sandbox in use.
  public interface Use extends AutoCloseable {
    /// The sandbox as it was when the use was opened.
    Sandbox sandbox();

    Guest guest();

    @Override
    void close();
  }

  private final class OpenUse implements Use {
    private final Sandbox sandbox;
    private final AtomicBoolean open = new AtomicBoolean(true);

    private OpenUse(Sandbox sandbox) {
      this.sandbox = sandbox;
    }

    @Override
    public Sandbox sandbox() {
      return sandbox;
    }

    @Override
    public Guest guest() {
      return node.guest(sandbox.id());
    }

    @Override
    public void close() {
      if (open.compareAndSet(true, false)) {
        left(sandbox.id());
      }
    }
  }

  /// Looks at the clock again now, because it was moved.
  void clockMoved() {
    expiry.poke();
  }

  /// How many lanes have work, for tests.
  int busyLanes() {
    return lanes.busy();
  }

  private void refuseWhenClosing() {
    if (closing) {
      throw Problem.of(ErrorCode.SHUTTING_DOWN, "the service is stopping")
          .remedy("Repeat the call with the same Idempotency-Key when it is back.")
          .toException();
    }
  }

  /// For a stop of the service: refuses new work and suspends every sandbox that has a VM, a few at
  /// a time. What can't be suspended, or not in time, is kept as it is; no error comes of it.
  public void suspendAll(Duration deadline) {
    closing = true;
    expiry.close();
    new SandboxesAtStop(ledger, requests).suspend(deadline);
  }

  static SpaceException notFound() {
    return Problem.of(ErrorCode.SANDBOX_NOT_FOUND, "no sandbox has this id")
        .remedy("Ids of deleted sandboxes are never used again; list the sandboxes there are.")
        .toException();
  }

  /// Refuses new work and lets what runs finish, up to 30 s. Sandboxes stay as they are; what is
  /// not finished by then is left for the next start.
  @Override
  public void close() {
    closing = true;
    expiry.close();
    lanes.close();
    if (!lanes.awaitIdle(CLOSE_WAIT)) {
      LOG.warn("some operations are left for the next start");
    }
    ledger.close();
  }
}
