package dev.space.core.sandbox;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.operation.Entry;
import dev.space.core.operation.Idempotency;
import dev.space.core.operation.IdempotencyKey;
import dev.space.core.operation.Lanes;
import dev.space.core.operation.Ledger;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationKind;
import dev.space.core.operation.OperationState;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.BiPredicate;

/// Deletes. The tombstone is set in the request's own transaction, which also cancels all that is
/// open; the rest is removing what is there, beside the lane and never behind it.
final class SandboxDeletes {

  /// How long a delete waits for the call it interrupted. A call that takes longer removes what it
  /// made when it ends.
  static final Duration UNWIND_WAIT = Duration.ofSeconds(10);

  private final Ledger ledger;
  private final Lanes lanes;
  private final NodeWork nodes;
  private final SandboxMoves moves;

  SandboxDeletes(Ledger ledger, Lanes lanes, NodeWork nodes, SandboxMoves moves) {
    this.ledger = ledger;
    this.lanes = lanes;
    this.nodes = nodes;
    this.moves = moves;
  }

  /// Why an operation that was open is cancelled.
  static Problem reason() {
    return Problem.of(ErrorCode.CANCELLED, "the sandbox was deleted before this was done");
  }

  private record Answer(Operation operation, boolean isNew) {}

  /// Deletes a sandbox if it still fulfils the condition; empty when it doesn't.
  Optional<Operation> delete(
      Caller caller,
      String id,
      Optional<IdempotencyKey> key,
      BiPredicate<Entry, Sandbox> condition) {
    return lanes.inOrder(
        id,
        () -> {
          Optional<Answer> answer =
              ledger.write(
                  entry -> {
                    Optional<Operation> before =
                        Idempotency.answered(entry.tx(), caller.project(), key, entry.now())
                            .flatMap(o -> entry.tx().operations().find(caller.project(), o));
                    if (before.isPresent()) {
                      return Optional.of(new Answer(before.get(), false));
                    }
                    Sandbox s =
                        entry
                            .tx()
                            .sandboxes()
                            .find(caller.project(), id)
                            .orElseThrow(SandboxService::notFound);
                    if (!condition.test(entry, s)) {
                      return Optional.empty();
                    }
                    Answer made = record(entry, s);
                    Idempotency.remember(
                        entry.tx(), caller.project(), key, made.operation().id(), entry.now());
                    return Optional.of(made);
                  });
          answer.filter(Answer::isNew).ifPresent(a -> start(a.operation(), id, lanes.preempt(id)));
          return answer.map(Answer::operation);
        });
  }

  private Answer record(Entry entry, Sandbox s) {
    Optional<Operation> latest = entry.tx().operations().latest(s.id(), OperationKind.DELETE);
    if (s.state() == SandboxState.DELETING || s.state() == SandboxState.DELETED) {
      Optional<Operation> first =
          latest.filter(
              o -> s.state() == SandboxState.DELETED || o.state() != OperationState.FAILED);
      if (first.isPresent()) {
        return new Answer(first.get(), false);
      }
      if (s.state() == SandboxState.DELETED) {
        // A copy of a fork that never came up: it is gone without a delete of its own.
        throw SandboxService.notFound();
      }
    }
    Operation operation =
        entry.begin(s.project(), OperationKind.DELETE, Optional.of(s.id()), Map.of());
    for (Operation open : entry.tx().operations().open(s.id())) {
      if (open.kind() != OperationKind.DELETE) {
        entry.cancel(open, reason());
      }
    }
    moves.move(
        entry, s, SandboxEvent.DELETE_REQUESTED, Optional.empty(), Optional.of(operation.id()));
    return new Answer(operation, true);
  }

  /// Does the work of a delete that is recorded.
  ///
  /// @param interrupted jobs that may still be making what is to be removed
  void start(Operation operation, String id, List<Lanes.Job> interrupted) {
    lanes.submit(
        "delete/" + id,
        own -> {
          Optional<Problem> failure = nodes.remove(id);
          interrupted.forEach(job -> job.awaitEnd(UNWIND_WAIT));
          if (!interrupted.isEmpty() && failure.isEmpty()) {
            failure = nodes.remove(id);
          }
          finish(operation.id(), id, failure);
        });
  }

  /// Sets the tombstone of what is removed.
  Sandbox gone(Entry entry, Sandbox s, Optional<String> operationId) {
    return s.state() == SandboxState.DELETED
        ? s
        : moves.move(entry, s, SandboxEvent.DELETE_SUCCEEDED, Optional.empty(), operationId);
  }

  private void finish(String operationId, String id, Optional<Problem> failure) {
    Optional<String> snapshot =
        ledger.persist(
            entry -> {
              Operation o = entry.tx().operations().find(operationId).orElseThrow();
              Sandbox s = entry.tx().sandboxes().find(id).orElseThrow();
              if (failure.isPresent()) {
                entry.fail(
                    o,
                    failure
                        .get()
                        .remedy(
                            "Delete it again; the next start of the service tries too. It can't be"
                                + " used any more."),
                    List.of());
                return Optional.empty();
              }
              gone(entry, s, Optional.of(o.id()));
              entry.succeed(o, List.of());
              return s.snapshotId()
                  .filter(
                      p ->
                          entry.tx().snapshots().internal().stream()
                              .anyMatch(internal -> internal.id().equals(p)));
            });
    snapshot.ifPresent(nodes::sweepSnapshot);
  }
}
