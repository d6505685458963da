package dev.space.core.sandbox;

import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.HashMap;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// One thread that waits for the next of any number of times. It is a thread of the operating
/// system, so that it runs on time however many virtual threads want the CPUs.
final class Timers implements AutoCloseable {

  /// The longest wait, so that a jump of the wall clock is noticed within it.
  private static final Duration WAIT_MAX = Duration.ofSeconds(1);

  private static final Logger LOG = LoggerFactory.getLogger(Timers.class);

  enum Kind {
    EXPIRY,
    IDLE,
    HOUSEKEEPING
  }

  record Key(String id, Kind kind) {}

  private record Due(Instant at, Key key) implements Comparable<Due> {
    @Override
    public int compareTo(Due other) {
      return at.compareTo(other.at);
    }
  }

  private final InstantSource clock;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final Map<Key, Instant> armed = new HashMap<>();
  private final PriorityQueue<Due> queue = new PriorityQueue<>();
  private boolean closed;

  Timers(InstantSource clock) {
    this.clock = clock;
  }

  /// @param fire called in a virtual thread of its own for each time that came
  void start(Consumer<Key> fire) {
    Thread.ofPlatform().daemon().name("sandbox-timers").start(() -> run(fire));
  }

  /// Sets or moves a timer.
  void arm(Key key, Instant at) {
    lock.lock();
    try {
      if (at.equals(armed.put(key, at))) {
        return;
      }
      queue.add(new Due(at, key));
      if (queue.size() > 64 && queue.size() > 4 * armed.size()) {
        queue.removeIf(due -> !due.at().equals(armed.get(due.key())));
      }
      changed.signal();
    } finally {
      lock.unlock();
    }
  }

  void disarm(Key key) {
    lock.lock();
    try {
      armed.remove(key);
    } finally {
      lock.unlock();
    }
  }

  /// Looks at the clock again now, because it was moved.
  void poke() {
    lock.lock();
    try {
      changed.signal();
    } finally {
      lock.unlock();
    }
  }

  private void run(Consumer<Key> fire) {
    while (true) {
      Key due;
      lock.lock();
      try {
        if (closed) {
          return;
        }
        Due next = queue.peek();
        if (next == null) {
          changed.await();
          continue;
        }
        Duration left = Duration.between(clock.instant(), next.at());
        if (left.isPositive()) {
          Duration wait = left.compareTo(WAIT_MAX) < 0 ? left : WAIT_MAX;
          changed.await(wait.toNanos(), TimeUnit.NANOSECONDS);
          continue;
        }
        queue.poll();
        if (!armed.remove(next.key(), next.at())) {
          continue;
        }
        due = next.key();
      } catch (InterruptedException e) {
        return;
      } finally {
        lock.unlock();
      }
      Thread.ofVirtual().name("timer-" + due.id()).start(() -> fire(due, fire));
    }
  }

  private static void fire(Key key, Consumer<Key> fire) {
    try {
      fire.accept(key);
    } catch (RuntimeException e) {
      LOG.warn("the {} timer of {} failed", key.kind(), key.id(), e);
    }
  }

  @Override
  public void close() {
    lock.lock();
    try {
      closed = true;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }
}
