package dev.space.node.log;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessExit;
import dev.space.core.session.OutputLog;
import dev.space.host.DiskFull;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/// One session's log, on disk in [Segments].
///
/// Events are collected in memory and written in pieces of 64 KiB, or after a second, or at the
/// exit: the guest still has what a crash of the daemon takes from here. Readers find the newest
/// events in a cache that always holds what isn't written yet.
final class SegmentedLog implements OutputLog {

  /// What a reader gets at a time, and what is written at a time.
  static final int BURST_BYTES = 64 * 1024;

  private static final long CACHE_BYTES_MAX = 4L * BURST_BYTES;
  private static final long BUDGET_BYTES_MAX = 32L * 1024 * 1024;
  private static final long FLUSH_NANOS = 1_000_000_000L;
  private static final int PENDING_BYTES_FIRST = 1024;

  private final AtomicLong budget;

  final ReentrantLock lock = new ReentrantLock();
  final Condition grew = lock.newCondition();
  private final Condition room = lock.newCondition();

  private final Segments segments;
  private final Set<LogReader> readers = new HashSet<>();
  private final TailCache cache;
  private byte[] pending = new byte[0];
  private int pendingBytes;
  private long flushedAt = System.nanoTime();
  private long lastSeq;
  private long durableSeq;
  private Optional<ProcessExit> exit = Optional.empty();
  private boolean ended;
  private long wakes;

  /// Opens what is there; a torn end is cut off at the last whole record.
  SegmentedLog(Path directory, LogBounds bounds, AtomicLong budget) {
    this.budget = budget;
    try {
      segments = new Segments(directory, bounds);
    } catch (IOException e) {
      throw failed("open", e);
    }
    lastSeq = segments.lastSeq();
    durableSeq = lastSeq;
    exit = segments.exit();
    cache = new TailCache(budget, lastSeq);
  }

  @Override
  public long durableSeq() {
    lock.lock();
    try {
      return durableSeq;
    } finally {
      lock.unlock();
    }
  }

  @Override
  public long lastSeq() {
    lock.lock();
    try {
      return lastSeq;
    } finally {
      lock.unlock();
    }
  }

  @Override
  public Optional<ProcessExit> exit() {
    lock.lock();
    try {
      return exit;
    } finally {
      lock.unlock();
    }
  }

  @Override
  public void append(OutputEvent event) throws InterruptedException {
    RecordCodec.check(event);
    lock.lockInterruptibly();
    try {
      if (ended) {
        throw Problem.of(ErrorCode.CANCELLED, "The session's log has ended.").toException();
      }
      if (event.seq() <= lastSeq) {
        return;
      }
      follows(event);
      int size = RecordCodec.size(event);
      if (pendingBytes > 0 && pendingBytes + size > BURST_BYTES) {
        flushLocked();
      }
      makeRoom(event, size);
      reserve(size);
      RecordCodec.write(event, pending, pendingBytes);
      pendingBytes += size;
      lastSeq = event.seq();
      segments.appended(event, size);
      if (event instanceof OutputEvent.Exited exited) {
        exit = Optional.of(exited.exit());
      }
      cache.add(event);
      tidy();
      grew.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /// A guest may be hostile: numbers that jump are refused, so that no reader misses anything
  /// without being told.
  private void follows(OutputEvent event) {
    long first = event instanceof OutputEvent.Gap gap ? gap.firstSeq() : event.seq();
    if (first > lastSeq + 1) {
      throw Problem.of(
              ErrorCode.INTERNAL,
              "The guest sent output event " + first + " after " + lastSeq + ".")
          .toException();
    }
  }

  /// Goes to the next segment when this one is full, and removes the oldest of the tail when the
  /// tail is: as soon as no open reader needs it.
  private void makeRoom(OutputEvent event, int size) throws InterruptedException {
    if (segments.isFull(pendingBytes + size)) {
      flushLocked();
      // The exit is the last event: it never waits.
      while (segments.isTailFull() && !(event instanceof OutputEvent.Exited)) {
        if (needed(segments.oldestOfTail())) {
          room.await();
          if (ended) {
            throw Problem.of(ErrorCode.CANCELLED, "The session's log has ended.").toException();
          }
        } else {
          dropOldest();
        }
      }
      rotate();
    }
  }

  private boolean needed(Segment segment) {
    for (LogReader reader : readers) {
      if (reader.position() < segment.lastSeq) {
        return true;
      }
    }
    return false;
  }

  private void dropOldest() {
    try {
      segments.removeOldestOfTail();
    } catch (IOException e) {
      throw failed("shorten", e);
    }
  }

  private void rotate() {
    try {
      segments.rotate(lastSeq + 1);
    } catch (IOException e) {
      throw failed("write", e);
    }
  }

  private void reserve(int size) {
    if (pendingBytes + size > pending.length) {
      int length = Math.max(pendingBytes + size, Math.max(PENDING_BYTES_FIRST, pending.length * 2));
      resizePending(length);
    }
  }

  private void resizePending(int length) {
    budget.addAndGet(length - pending.length);
    pending = Arrays.copyOf(pending, length);
  }

  /// Keeps memory in bounds: writes what is ripe, and caches only for those who read.
  private void tidy() {
    boolean scarce = budget.get() > BUDGET_BYTES_MAX;
    long allowed = readers.isEmpty() || scarce ? 0 : CACHE_BYTES_MAX;
    boolean ripe = pendingBytes >= BURST_BYTES || System.nanoTime() - flushedAt > FLUSH_NANOS;
    if (pendingBytes > 0 && (ripe || scarce || cache.full())) {
      flushLocked();
    }
    while (!cache.isEmpty()
        && cache.afterSeq() < durableSeq
        && (cache.bytes() > allowed || cache.full())) {
      cache.dropFirst();
    }
  }

  @Override
  public void flush() {
    lock.lock();
    try {
      flushLocked();
      if (pending.length > 0) {
        resizePending(0);
      }
      tidy();
    } finally {
      lock.unlock();
    }
  }

  private void flushLocked() {
    if (pendingBytes > 0) {
      try {
        segments.write(pending, pendingBytes);
      } catch (IOException e) {
        throw failed("write", e);
      }
      pendingBytes = 0;
      durableSeq = lastSeq;
    }
    flushedAt = System.nanoTime();
  }

  @Override
  public void end() {
    lock.lock();
    try {
      ended = true;
      grew.signalAll();
      room.signalAll();
    } finally {
      lock.unlock();
    }
  }

  @Override
  public void wake() {
    lock.lock();
    try {
      wakes++;
      grew.signalAll();
    } finally {
      lock.unlock();
    }
  }

  @Override
  public Reader reader(long afterSeq) {
    lock.lock();
    try {
      var reader = new LogReader(this, afterSeq);
      readers.add(reader);
      return reader;
    } finally {
      lock.unlock();
    }
  }

  @Override
  public void close() {
    lock.lock();
    try {
      ended = true;
      flushLocked();
      segments.close();
    } catch (IOException e) {
      throw failed("close", e);
    } finally {
      budget.addAndGet(-pending.length);
      pending = new byte[0];
      while (!cache.isEmpty()) {
        cache.dropFirst();
      }
      grew.signalAll();
      room.signalAll();
      lock.unlock();
    }
  }

  // -- for readers

  /// Where the next events of a reader are.
  sealed interface Found {
    /// Nothing new within the wait.
    record Nothing() implements Found {}

    record Events(List<OutputEvent> events) implements Found {}

    /// In a file, from there up to `length`.
    record InFile(Segment segment, long length) implements Found {}
  }

  /// Waits for what follows an event.
  Found find(long afterSeq, Duration wait) throws InterruptedException {
    lock.lockInterruptibly();
    try {
      long seen = wakes;
      long left = wait.toNanos();
      while (lastSeq <= afterSeq && !ended && wakes == seen && left > 0) {
        left = grew.awaitNanos(left);
      }
      if (lastSeq <= afterSeq) {
        return new Found.Nothing();
      }
      if (afterSeq >= cache.afterSeq() && !cache.isEmpty()) {
        return new Found.Events(cache.after(afterSeq, BURST_BYTES));
      }
      return segments.find(afterSeq);
    } finally {
      lock.unlock();
    }
  }

  boolean finished(long afterSeq) {
    lock.lock();
    try {
      return ended && lastSeq <= afterSeq;
    } finally {
      lock.unlock();
    }
  }

  void moved() {
    lock.lock();
    try {
      room.signalAll();
    } finally {
      lock.unlock();
    }
  }

  void left(LogReader reader) {
    lock.lock();
    try {
      readers.remove(reader);
      room.signalAll();
      if (readers.isEmpty() && !ended) {
        tidy();
      }
    } finally {
      lock.unlock();
    }
  }

  static SpaceException failed(String what, IOException e) {
    String why = String.valueOf(e.getMessage());
    if (DiskFull.isSaidBy(e)) {
      return Problem.of(ErrorCode.DISK_FULL, "The disk of the data directory is full.")
          .because(why)
          .remedy("Make room on the host: output waits meanwhile.")
          .toException(e);
    }
    return Problem.of(ErrorCode.INTERNAL, "Failed to " + what + " a session's log.")
        .because(why)
        .toException(e);
  }
}
