package dev.space.core.operation;

import dev.space.core.Ids;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.event.EventService;
import dev.space.core.store.Store;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.temporal.ChronoUnit;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The one place where lifecycle changes are written: records and the events that tell of them in
/// one transaction, and whoever waits is woken after it was committed.
public final class Ledger implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(Ledger.class);
  private static final Duration RETRY_FIRST = Duration.ofMillis(50);
  private static final Duration RETRY_MAX = Duration.ofSeconds(5);

  private final Store store;
  private final Ids ids;
  private final InstantSource clock;
  private final EventService events;
  private final Waiters waiters = new Waiters();
  private final ConcurrentHashMap<String, String> progress = new ConcurrentHashMap<>();
  private final CountDownLatch closed = new CountDownLatch(1);

  public Ledger(Store store, Ids ids, InstantSource clock, EventService events) {
    this.store = store;
    this.ids = ids;
    this.clock = clock;
    this.events = events;
  }

  public Store store() {
    return store;
  }

  public Ids ids() {
    return ids;
  }

  public Waiters waiters() {
    return waiters;
  }

  /// Now, in whole milliseconds, as it can be stored.
  public Instant now() {
    return clock.instant().truncatedTo(ChronoUnit.MILLIS);
  }

  /// Runs the work in one transaction and then tells what it did. The work may run more than once.
  public <T> T write(Function<Entry, T> work) {
    AtomicReference<Entry> last = new AtomicReference<>();
    T answer =
        store.transact(
            tx -> {
              Entry entry = new Entry(tx, ids, now());
              last.set(entry);
              return work.apply(entry);
            });
    Entry entry = last.get();
    events.tell(entry.events());
    entry
        .changed()
        .forEach(
            (id, terminal) -> {
              if (terminal) {
                progress.remove(id);
              }
              waiters.changed(id);
            });
    entry.after().forEach(Runnable::run);
    return answer;
  }

  /// Writes what has happened already, so it can't be refused: tries again for as long as the store
  /// fails, until this is closed. An interrupt of the calling thread is forgotten.
  ///
  /// @throws SpaceException SHUTTING_DOWN when it was closed first; the next start finishes it
  public <T> T persist(Function<Entry, T> work) {
    Duration pause = RETRY_FIRST;
    while (true) {
      boolean interrupted = Thread.interrupted();
      try {
        if (isClosed()) {
          throw shuttingDown();
        }
        return write(work);
      } catch (SpaceException e) {
        if (e.code() != ErrorCode.DISK_FULL && e.code() != ErrorCode.INTERNAL) {
          throw e;
        }
        LOG.warn("the store failed and is tried again in {}: {}", pause, e.getMessage());
        LOG.debug("the failure{}", interrupted ? " (interrupted before)" : "", e);
      }
      if (pause(pause)) {
        throw shuttingDown();
      }
      pause = pause.multipliedBy(2).compareTo(RETRY_MAX) > 0 ? RETRY_MAX : pause.multipliedBy(2);
    }
  }

  /// Waits, and says whether the ledger was closed meanwhile. Interrupts are forgotten.
  public boolean pause(Duration time) {
    try {
      return closed.await(time.toNanos(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      return isClosed();
    }
  }

  /// Notes the step an operation is at, for people; not durable.
  public void progress(String operationId, String step) {
    progress.put(operationId, step);
    waiters.changed(operationId);
  }

  /// The step an operation is at.
  Optional<String> progress(String operationId) {
    return Optional.ofNullable(progress.get(operationId));
  }

  public boolean isClosed() {
    return closed.getCount() == 0;
  }

  private static SpaceException shuttingDown() {
    return Problem.of(ErrorCode.SHUTTING_DOWN, "the service is stopping")
        .remedy("Repeat the call with the same Idempotency-Key when it is back.")
        .toException();
  }

  /// Ends the retries. The store is its owner's to close.
  @Override
  public void close() {
    closed.countDown();
  }
}
