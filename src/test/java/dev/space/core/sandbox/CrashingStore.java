package dev.space.core.sandbox;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.store.Store;
import dev.space.core.store.Tx;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Function;

/// A store whose daemon dies at a chosen transaction: right before it, or right after it was
/// committed and before anybody was told.
final class CrashingStore implements Store {

  private final Store store;
  private final AtomicInteger left;
  private final boolean afterCommit;
  private final ReadWriteLock running = new ReentrantReadWriteLock();
  private final AtomicBoolean dead = new AtomicBoolean();
  private volatile Runnable crash = () -> {};

  /// @param transactions how many go well
  CrashingStore(Store store, int transactions, boolean afterCommit) {
    this.store = store;
    this.left = new AtomicInteger(transactions);
    this.afterCommit = afterCommit;
  }

  void onCrash(Runnable action) {
    crash = action;
  }

  boolean isDead() {
    return dead.get();
  }

  void die() {
    if (dead.compareAndSet(false, true)) {
      crash.run();
    }
  }

  private static SpaceException gone() {
    return Problem.of(ErrorCode.INTERNAL, "the daemon is dead").toException();
  }

  @Override
  public <T> T transact(Function<Tx, T> work) {
    boolean last = left.decrementAndGet() == 0;
    if (last && !afterCommit) {
      die();
    }
    T answer;
    running.readLock().lock();
    try {
      if (dead.get()) {
        throw gone();
      }
      answer = store.transact(work);
    } finally {
      running.readLock().unlock();
    }
    if (last) {
      die();
      throw gone();
    }
    return answer;
  }

  @Override
  public <T> T read(Function<Tx, T> work) {
    running.readLock().lock();
    try {
      if (dead.get()) {
        throw gone();
      }
      return store.read(work);
    } finally {
      running.readLock().unlock();
    }
  }

  /// Waits for transactions that were under way when the daemon died, as the next one would find
  /// them either whole or not at all.
  @Override
  public void close() {
    die();
    running.writeLock().lock();
    try {
      store.close();
    } finally {
      running.writeLock().unlock();
    }
  }
}
