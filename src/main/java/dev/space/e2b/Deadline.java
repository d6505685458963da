package dev.space.e2b;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/// Runs blocking work under a deadline by interrupting it.
final class Deadline {

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition ended = lock.newCondition();
  private boolean done;
  private boolean over;

  /// Blocking work.
  @FunctionalInterface
  interface Work {
    void run() throws InterruptedException;
  }

  private Deadline() {}

  /// Runs the work.
  ///
  /// @throws ConnectException DEADLINE_EXCEEDED when it was still running at the end of the time
  static void run(Optional<Duration> limit, Work work) throws InterruptedException {
    if (limit.isEmpty()) {
      work.run();
    } else {
      new Deadline().run(limit.get(), work);
    }
  }

  private void run(Duration limit, Work work) throws InterruptedException {
    Thread worker = Thread.currentThread();
    Thread.ofVirtual().name("e2b-deadline").start(() -> watch(limit, worker));
    try {
      work.run();
    } catch (RuntimeException | InterruptedException e) {
      if (!finish()) {
        throw e;
      }
    }
    if (finish()) {
      boolean _ = Thread.interrupted();
      throw new ConnectException(
          ConnectCode.DEADLINE_EXCEEDED, "The call's time of " + limit.toMillis() + " ms is over");
    }
  }

  /// Ends the watch and says whether the time had run out before.
  private boolean finish() {
    lock.lock();
    try {
      done = true;
      ended.signalAll();
      return over;
    } finally {
      lock.unlock();
    }
  }

  private void watch(Duration limit, Thread worker) {
    lock.lock();
    try {
      long left = limit.toNanos();
      while (!done && left > 0) {
        left = ended.awaitNanos(left);
      }
      if (!done) {
        over = true;
        worker.interrupt();
      }
    } catch (InterruptedException _) {
      // Nobody interrupts this thread.
    } finally {
      lock.unlock();
    }
  }
}
