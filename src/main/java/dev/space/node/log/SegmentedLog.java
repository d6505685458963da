package dev.space.node.log;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessExit;
import dev.space.core.session.OutputLog;
import dev.space.host.DiskFull;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// One session's log. The first segment is the head; segments after it are the tail, of which the
/// oldest is removed when the tail grows over its bound.
///
/// Events are collected in memory and written in pieces of 64 KiB, or after a second, or at the
/// exit: the guest still has what a crash of the daemon takes from here. Readers find the newest
/// events in a cache that always holds what isn't written yet.
final class SegmentedLog implements OutputLog {

  private static final Logger LOG = LoggerFactory.getLogger(SegmentedLog.class);

  /// What a reader gets at a time, and what is written at a time.
  static final int BURST_BYTES = 64 * 1024;

  private static final long CACHE_BYTES_MAX = 4L * BURST_BYTES;
  private static final long BUDGET_BYTES_MAX = 32L * 1024 * 1024;
  private static final long FLUSH_NANOS = 1_000_000_000L;
  private static final int PENDING_BYTES_FIRST = 1024;

  private final Path directory;
  private final LogBounds bounds;
  private final AtomicLong budget;

  final ReentrantLock lock = new ReentrantLock();
  final Condition grew = lock.newCondition();
  private final Condition room = lock.newCondition();

  final List<Segment> segments = new ArrayList<>();
  private final Set<LogReader> readers = new HashSet<>();
  private final TailCache cache;
  private byte[] pending = new byte[0];
  private int pendingBytes;
  private long flushedAt = System.nanoTime();
  private long lastSeq;
  private long durableSeq;
  private long tailBytes;
  private Optional<ProcessExit> exit = Optional.empty();
  private boolean ended;
  private long wakes;

  /// Opens what is there; a torn end is cut off at the last whole record.
  SegmentedLog(Path directory, LogBounds bounds, AtomicLong budget) {
    this.directory = directory;
    this.bounds = bounds;
    this.budget = budget;
    try {
      load();
    } catch (IOException e) {
      throw failed("open", e);
    }
    this.cache = new TailCache(budget, lastSeq);
  }

  private void load() throws IOException {
    if (!Files.isDirectory(directory)) {
      return;
    }
    List<Path> files;
    try (var all = Files.list(directory)) {
      files = all.filter(file -> file.toString().endsWith(Segment.SUFFIX)).sorted().toList();
    }
    for (Path file : files) {
      var segment = Segment.open(file);
      if (segment.isEmpty()) {
        LOG.warn("{}: not a segment, removed", file);
        Files.delete(file);
      } else {
        segments.add(segment.get());
      }
    }
    for (int i = 0; i < segments.size(); i++) {
      measure(i);
      if (i > 0) {
        tailBytes += segments.get(i).length;
      }
    }
    if (!segments.isEmpty()) {
      lastSeq = segments.getLast().lastSeq;
      durableSeq = lastSeq;
    }
  }

  private void measure(int index) throws IOException {
    Segment segment = segments.get(index);
    boolean last = index == segments.size() - 1;
    if (index > 0 && !last) {
      Segment next = segments.get(index + 1);
      segment.lastSeq = next.firstSeq - 1;
      segment.output = next.outputBefore - segment.outputBefore;
      return;
    }
    Segment.Scanned scanned = segment.scan();
    if (scanned.length() < segment.length) {
      LOG.info("{}: torn end of {} bytes cut", segment.file, segment.length - scanned.length());
    }
    segment.lastSeq = scanned.lastSeq();
    segment.output = scanned.output();
    segment.length = scanned.length();
    if (last && scanned.last().orElse(null) instanceof OutputEvent.Exited exited) {
      exit = Optional.of(exited.exit());
    }
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
      Segment segment = segments.getLast();
      reserve(size);
      RecordCodec.write(event, pending, pendingBytes);
      pendingBytes += size;
      lastSeq = event.seq();
      segment.lastSeq = lastSeq;
      segment.output += RecordCodec.outputBytes(event);
      if (segments.size() > 1) {
        tailBytes += size;
      }
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
    if (segments.isEmpty()) {
      segments.add(new Segment(Segment.path(directory, lastSeq + 1), lastSeq + 1, 0));
      return;
    }
    if (current() + size > (segments.size() == 1 ? bounds.headBytes() : bounds.segmentBytes())) {
      flushLocked();
      while (tailBytes > 0
          && segments.size() > 2
          && tailBytes + bounds.segmentBytes() > bounds.tailBytes()
          && !(event instanceof OutputEvent.Exited)) {
        Segment oldest = segments.get(1);
        if (needed(oldest)) {
          room.await();
          if (ended) {
            throw Problem.of(ErrorCode.CANCELLED, "The session's log has ended.").toException();
          }
        } else {
          remove(oldest);
        }
      }
      rotate();
    }
  }

  private long current() {
    return segments.getLast().length + pendingBytes;
  }

  private boolean needed(Segment segment) {
    for (LogReader reader : readers) {
      if (reader.position() < segment.lastSeq) {
        return true;
      }
    }
    return false;
  }

  private void remove(Segment segment) {
    try {
      segment.close();
      Files.deleteIfExists(segment.file);
    } catch (IOException e) {
      throw failed("shorten", e);
    }
    segments.remove(segment);
    tailBytes -= segment.length;
  }

  private void rotate() {
    Segment full = segments.getLast();
    try {
      full.close();
    } catch (IOException e) {
      throw failed("write", e);
    }
    segments.add(
        new Segment(
            Segment.path(directory, lastSeq + 1), lastSeq + 1, full.outputBefore + full.output));
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
      Segment segment = segments.getLast();
      try {
        boolean begins = segment.length == 0;
        if (begins) {
          Files.createDirectories(directory);
        }
        segment.write(pending, pendingBytes);
        if (begins && segments.size() > 1) {
          tailBytes += Segment.HEADER_BYTES;
        }
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
      for (Segment segment : segments) {
        segment.close();
      }
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
      return inFile(afterSeq);
    } finally {
      lock.unlock();
    }
  }

  private Found inFile(long afterSeq) {
    long outputBefore = 0;
    for (Segment segment : segments) {
      if (segment.lastSeq > afterSeq) {
        if (afterSeq < segment.firstSeq - 1) {
          long missing = segment.outputBefore - outputBefore;
          return new Found.Events(
              List.of(new OutputEvent.Gap(segment.firstSeq - 1, 0, afterSeq + 1, missing)));
        }
        return new Found.InFile(segment, segment.length);
      }
      outputBefore = segment.outputBefore + segment.output;
    }
    return new Found.Nothing();
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
