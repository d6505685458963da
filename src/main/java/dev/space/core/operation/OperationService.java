package dev.space.core.operation;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.store.Page;
import dev.space.core.store.Tx;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Reading operations and waiting for them; and running those that belong to no sandbox.
public final class OperationService implements AutoCloseable {

  /// The longest wait of one read.
  public static final Duration WAIT_MAX = Duration.ofSeconds(60);

  private static final Logger LOG = LoggerFactory.getLogger(OperationService.class);
  private static final Duration CLOSE_WAIT = Duration.ofSeconds(10);

  private final Ledger ledger;
  private final ConcurrentHashMap<String, Thread> working = new ConcurrentHashMap<>();

  public OperationService(Ledger ledger) {
    this.ledger = ledger;
  }

  /// The operation, as soon as it is terminal or the wait is over (at most 60 s).
  ///
  /// @throws SpaceException OPERATION_NOT_FOUND
  public Operation get(Caller caller, String id, Duration wait) {
    Operation operation = find(caller.project(), id);
    if (operation.state().isTerminal() || wait.isZero() || wait.isNegative()) {
      return operation;
    }
    ledger
        .waiters()
        .await(
            id,
            wait.compareTo(WAIT_MAX) > 0 ? WAIT_MAX : wait,
            () -> find(caller.project(), id).state().isTerminal());
    return find(caller.project(), id);
  }

  private Operation find(String project, String id) {
    return ledger
        .store()
        .<Optional<Operation>>read(tx -> tx.operations().find(project, id))
        .map(this::withProgress)
        .orElseThrow(
            () ->
                Problem.of(ErrorCode.OPERATION_NOT_FOUND, "no operation has this id")
                    .remedy("Operations are forgotten some days after their end.")
                    .toException());
  }

  /// Operations, newest first.
  ///
  /// @param limit 1 to 1000
  public Page<Operation> list(
      Caller caller, Optional<String> sandboxId, int limit, Optional<String> cursor) {
    Page<Operation> page =
        ledger.store().read(tx -> tx.operations().list(caller.project(), sandboxId, limit, cursor));
    return new Page<>(page.items().stream().map(this::withProgress).toList(), page.next());
  }

  private Operation withProgress(Operation o) {
    Optional<String> step = ledger.progress(o.id());
    if (o.state().isTerminal() || step.isEmpty()) {
      return o;
    }
    return new Operation(
        o.id(),
        o.project(),
        o.kind(),
        o.sandboxId(),
        o.state(),
        step,
        o.error(),
        o.resultIds(),
        o.createdAt(),
        o.startedAt(),
        o.endedAt(),
        o.rev());
  }

  /// The work of an operation that belongs to no sandbox.
  @FunctionalInterface
  public interface Work {
    /// Does it, in a thread of its own. Whatever it throws fails the operation, and then it has
    /// left nothing behind. An interrupt means: give up.
    ///
    /// @param progress takes one line about the step at hand
    Result run(Operation operation, Consumer<String> progress);

    /// Called instead of [#run] when the key's answer is an earlier operation.
    default void answeredBefore() {}
  }

  /// What a work made.
  ///
  /// @param ids the operation's result ids
  /// @param record writes it down, in the transaction that ends the operation
  /// @param afterwards run when that was committed
  public record Result(List<String> ids, Consumer<Tx> record, Runnable afterwards) {
    public Result(List<String> ids, Consumer<Tx> record) {
      this(ids, record, () -> {});
    }
  }

  /// Records an operation and runs its work.
  ///
  /// @param intent what has to be known to undo it after a crash
  /// @return the operation, or the one that was the answer to the same key before, whose work is
  ///   not run again
  public Operation submit(
      Caller caller,
      OperationKind kind,
      Map<String, String> intent,
      Optional<IdempotencyKey> key,
      Work work) {
    record Answer(Operation operation, boolean isNew) {}
    if (ledger.isClosed()) {
      throw Problem.of(ErrorCode.SHUTTING_DOWN, "the service is stopping")
          .remedy("Repeat the call with the same Idempotency-Key when it is back.")
          .toException();
    }
    Answer answer =
        ledger.write(
            entry -> {
              Optional<Operation> before =
                  Idempotency.answered(entry.tx(), caller.project(), key, entry.now())
                      .flatMap(id -> entry.tx().operations().find(caller.project(), id));
              if (before.isPresent()) {
                return new Answer(before.get(), false);
              }
              Operation operation = entry.begin(caller.project(), kind, Optional.empty(), intent);
              Idempotency.remember(entry.tx(), caller.project(), key, operation.id(), entry.now());
              return new Answer(operation, true);
            });
    if (answer.isNew()) {
      Operation operation = answer.operation();
      Thread thread =
          Thread.ofVirtual()
              .name("operation-" + operation.id())
              .unstarted(() -> run(operation, work));
      working.put(operation.id(), thread);
      thread.start();
    } else {
      work.answeredBefore();
    }
    return answer.operation();
  }

  private void run(Operation operation, Work work) {
    try {
      Result result = work.run(operation, step -> ledger.progress(operation.id(), step));
      finish(
          operation,
          (entry, current) -> {
            result.record().accept(entry.tx());
            entry.afterwards(result.afterwards());
            entry.succeed(current, result.ids());
          });
    } catch (SpaceException e) {
      finish(operation, (entry, current) -> entry.fail(current, e.problem(), List.of()));
    } catch (RuntimeException e) {
      LOG.error("operation {} failed by a defect", operation.id(), e);
      Problem defect =
          Problem.of(ErrorCode.INTERNAL, "the operation failed by a defect of the service")
              .remedy("Look for the operation's id in the log and report it.");
      finish(operation, (entry, current) -> entry.fail(current, defect, List.of()));
    } finally {
      working.remove(operation.id());
    }
  }

  private interface Finish {
    void write(Entry entry, Operation current);
  }

  private void finish(Operation operation, Finish finish) {
    try {
      ledger.persist(
          entry -> {
            entry
                .tx()
                .operations()
                .find(operation.id())
                .filter(current -> !current.state().isTerminal())
                .ifPresent(current -> finish.write(entry, current));
            return true;
          });
    } catch (SpaceException e) {
      if (e.code() != ErrorCode.SHUTTING_DOWN) {
        throw e;
      }
      LOG.info("operation {} is left for the next start", operation.id());
    }
  }

  /// Fails what a former daemon left open and that belongs to no sandbox. Called once, at start.
  public void recover() {
    ledger.write(
        entry -> {
          for (Operation operation : entry.tx().operations().open()) {
            if (operation.sandboxId().isEmpty()) {
              entry.fail(
                  operation,
                  Problem.of(ErrorCode.CANCELLED, "the service stopped while this was being done")
                      .remedy("Start it again."),
                  List.of());
            }
          }
          return true;
        });
  }

  /// Interrupts the works that run and waits for them, up to 10 s.
  @Override
  public void close() {
    List<Thread> threads = List.copyOf(working.values());
    threads.forEach(Thread::interrupt);
    long end = System.nanoTime() + CLOSE_WAIT.toNanos();
    for (Thread thread : threads) {
      try {
        if (!thread.join(Duration.ofNanos(Math.max(1, end - System.nanoTime())))) {
          LOG.warn("{} still runs", thread.getName());
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return;
      }
    }
  }
}
