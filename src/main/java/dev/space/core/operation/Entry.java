package dev.space.core.operation;

import dev.space.core.Ids;
import dev.space.core.error.Problem;
import dev.space.core.event.EventService;
import dev.space.core.event.LifecycleEvent;
import dev.space.core.store.Tx;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// One transaction of the [Ledger] while it is being written.
public final class Entry {

  private static final int TRIM_EVERY = 1000;

  private final Tx tx;
  private final Ids ids;
  private final Instant now;
  private final List<LifecycleEvent> events = new ArrayList<>();
  private final Map<String, Boolean> changed = new LinkedHashMap<>();
  private final List<Runnable> after = new ArrayList<>();

  Entry(Tx tx, Ids ids, Instant now) {
    this.tx = tx;
    this.ids = ids;
    this.now = now;
  }

  public Tx tx() {
    return tx;
  }

  /// The time of everything that is written in this transaction.
  public Instant now() {
    return now;
  }

  /// Records a new operation that waits for its turn.
  public Operation open(
      String project, OperationKind kind, Optional<String> sandboxId, Map<String, String> intent) {
    return insert(project, kind, sandboxId, intent, OperationState.PENDING, Optional.empty());
  }

  /// Records a new operation whose work begins at once.
  public Operation begin(
      String project, OperationKind kind, Optional<String> sandboxId, Map<String, String> intent) {
    return insert(project, kind, sandboxId, intent, OperationState.RUNNING, Optional.of(now));
  }

  private Operation insert(
      String project,
      OperationKind kind,
      Optional<String> sandboxId,
      Map<String, String> intent,
      OperationState state,
      Optional<Instant> startedAt) {
    return tx.operations()
        .insert(
            new Operation(
                ids.next(Ids.Kind.OPERATION),
                project,
                kind,
                sandboxId,
                state,
                Optional.empty(),
                Optional.empty(),
                List.of(),
                now,
                startedAt,
                Optional.empty(),
                1),
            intent);
  }

  /// Records that work on an operation began.
  public Operation start(Operation o) {
    return tx.operations()
        .update(
            new Operation(
                o.id(),
                o.project(),
                o.kind(),
                o.sandboxId(),
                OperationState.RUNNING,
                o.progress(),
                Optional.empty(),
                o.resultIds(),
                o.createdAt(),
                Optional.of(now),
                Optional.empty(),
                o.rev()));
  }

  /// Records an operation that did what it should.
  public Operation succeed(Operation operation, List<String> resultIds) {
    return end(operation, OperationState.SUCCEEDED, Optional.empty(), resultIds);
  }

  /// Records an operation that failed.
  ///
  /// @param resultIds what it made nevertheless
  public Operation fail(Operation operation, Problem error, List<String> resultIds) {
    return end(operation, OperationState.FAILED, Optional.of(error), resultIds);
  }

  /// Records an operation that something else made pointless.
  public Operation cancel(Operation operation, Problem reason) {
    return end(operation, OperationState.CANCELLED, Optional.of(reason), List.of());
  }

  private Operation end(
      Operation o, OperationState state, Optional<Problem> error, List<String> resultIds) {
    Operation ended =
        tx.operations()
            .update(
                new Operation(
                    o.id(),
                    o.project(),
                    o.kind(),
                    o.sandboxId(),
                    state,
                    o.progress(),
                    error,
                    resultIds,
                    o.createdAt(),
                    Optional.of(o.startedAt().orElse(now)),
                    Optional.of(now),
                    o.rev()));
    Map<String, String> data = new HashMap<>();
    data.put("kind", o.kind().wire());
    data.put("millis", String.valueOf(Duration.between(o.createdAt(), now).toMillis()));
    error.ifPresent(problem -> data.put("code", problem.code().wire()));
    event(o.project(), "operation." + state.wire(), o.sandboxId(), Optional.of(o.id()), data);
    changed.put(o.id(), true);
    return ended;
  }

  /// Records an event.
  public void event(
      String project,
      String type,
      Optional<String> sandboxId,
      Optional<String> operationId,
      Map<String, String> data) {
    LifecycleEvent event = tx.events().append(project, now, type, sandboxId, operationId, data);
    if (event.seq() % TRIM_EVERY == 0) {
      tx.events().trim(EventService.KEPT_MAX);
    }
    events.add(event);
  }

  /// Wakes those who wait for this record, once the transaction is committed.
  public void changed(String id) {
    changed.putIfAbsent(id, false);
  }

  /// Runs something once the transaction is committed.
  public void afterwards(Runnable action) {
    after.add(action);
  }

  List<LifecycleEvent> events() {
    return events;
  }

  Map<String, Boolean> changed() {
    return changed;
  }

  List<Runnable> after() {
    return after;
  }
}
