package dev.space.core.sandbox;

import dev.space.core.access.Caller;
import dev.space.core.operation.Entry;
import dev.space.core.operation.Idempotency;
import dev.space.core.operation.IdempotencyKey;
import dev.space.core.operation.Lanes;
import dev.space.core.operation.Ledger;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationKind;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.BiFunction;

/// Requests to sandboxes that exist. Callers and timers come the same way.
final class SandboxRequests {

  private final Ledger ledger;
  private final Lanes lanes;
  private final LaneWork work;

  SandboxRequests(Ledger ledger, Lanes lanes, LaneWork work) {
    this.ledger = ledger;
    this.lanes = lanes;
    this.work = work;
  }

  private record Answer(Operation operation, boolean isNew) {}

  /// Records a request and puts it into the sandbox's lane.
  ///
  /// @param ready the sandbox to go on with, after what else belongs into the transaction; empty
  ///   when the request has become pointless
  Optional<Operation> request(
      Caller caller,
      String id,
      OperationKind kind,
      Map<String, String> intent,
      Optional<IdempotencyKey> key,
      BiFunction<Entry, Sandbox, Optional<Sandbox>> ready) {
    return lanes.inOrder(
        id,
        () -> {
          Optional<Answer> answer =
              ledger.write(
                  entry -> {
                    Optional<Operation> before = answered(entry, caller, key);
                    if (before.isPresent()) {
                      return Optional.of(new Answer(before.get(), false));
                    }
                    return ready
                        .apply(entry, find(entry, caller, id))
                        .map(s -> record(entry, s, kind, intent))
                        .map(o -> new Answer(remember(entry, caller, key, o), true));
                  });
          answer
              .filter(a -> a.isNew() && !a.operation().state().isTerminal())
              .ifPresent(a -> work.submit(a.operation()));
          return answer.map(Answer::operation);
        });
  }

  private Operation record(Entry entry, Sandbox s, OperationKind kind, Map<String, String> intent) {
    List<Operation> open = entry.tx().operations().open(s.id());
    SandboxState then = SandboxRules.projected(s.state(), open);
    SandboxRules.refusal(kind, then, s.cause())
        .ifPresent(
            problem -> {
              throw problem.toException();
            });
    Operation operation = entry.open(s.project(), kind, Optional.of(s.id()), intent);
    boolean free = open.isEmpty() && s.state() == then;
    return free ? work.begin(entry, s, operation) : operation;
  }

  /// The sandbox if the caller may see it.
  ///
  /// @throws dev.space.core.error.SpaceException SANDBOX_NOT_FOUND
  static Sandbox find(Entry entry, Caller caller, String id) {
    return entry
        .tx()
        .sandboxes()
        .find(caller.project(), id)
        .filter(s -> s.state() != SandboxState.DELETED)
        .orElseThrow(SandboxService::notFound);
  }

  static Optional<Operation> answered(Entry entry, Caller caller, Optional<IdempotencyKey> key) {
    return Idempotency.answered(entry.tx(), caller.project(), key, entry.now())
        .flatMap(id -> entry.tx().operations().find(caller.project(), id));
  }

  static Operation remember(
      Entry entry, Caller caller, Optional<IdempotencyKey> key, Operation operation) {
    Idempotency.remember(entry.tx(), caller.project(), key, operation.id(), entry.now());
    return operation;
  }
}
