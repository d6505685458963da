package dev.space.core.event;

import dev.space.core.access.Caller;
import dev.space.core.store.Store;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Lifecycle events, kept for a while and told to subscribers. They are recorded in the transaction
/// of the change they tell of, so none is missing and none tells of what didn't happen.
public final class EventService {

  /// How many events are kept; older ones are forgotten.
  public static final long KEPT_MAX = 100_000;

  private static final Logger LOG = LoggerFactory.getLogger(EventService.class);
  private static final int BATCH = 500;

  private final Store store;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition told = lock.newCondition();
  private final List<Consumer<LifecycleEvent>> listeners = new CopyOnWriteArrayList<>();
  private long changes;

  public EventService(Store store) {
    this.store = store;
  }

  /// Gives every event after `afterSeq` to the sink until the calling thread is interrupted; -1
  /// means from now on. Events that are no longer kept are left out.
  public void follow(Caller caller, long afterSeq, Consumer<LifecycleEvent> sink) {
    long last = afterSeq >= 0 ? afterSeq : store.<Long>read(tx -> tx.events().last());
    while (!Thread.currentThread().isInterrupted()) {
      long seen = seen();
      long from = last;
      List<LifecycleEvent> batch =
          store.read(tx -> tx.events().after(caller.project(), from, BATCH));
      for (LifecycleEvent event : batch) {
        sink.accept(event);
        last = event.seq();
      }
      if (batch.isEmpty() && !awaitChange(seen)) {
        return;
      }
    }
  }

  /// The newest number there is, for a follow that must miss nothing from here on.
  public long last() {
    return store.<Long>read(tx -> tx.events().last());
  }

  /// Adds someone who is told of every event of every project, in the thread that made it: for
  /// metrics. It must be quick.
  public void listen(Consumer<LifecycleEvent> listener) {
    listeners.add(listener);
  }

  /// Tells of events whose transaction was committed.
  public void tell(List<LifecycleEvent> events) {
    if (events.isEmpty()) {
      return;
    }
    lock.lock();
    try {
      changes++;
      told.signalAll();
    } finally {
      lock.unlock();
    }
    for (LifecycleEvent event : events) {
      for (Consumer<LifecycleEvent> listener : listeners) {
        try {
          listener.accept(event);
        } catch (RuntimeException e) {
          LOG.warn("a listener failed on event {}", event.seq(), e);
        }
      }
    }
  }

  private long seen() {
    lock.lock();
    try {
      return changes;
    } finally {
      lock.unlock();
    }
  }

  private boolean awaitChange(long seen) {
    lock.lock();
    try {
      while (changes == seen) {
        told.await();
      }
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    } finally {
      lock.unlock();
    }
  }
}
