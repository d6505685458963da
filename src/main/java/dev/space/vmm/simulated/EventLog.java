package dev.space.vmm.simulated;

import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessExit;
import dev.space.vmm.simulated.GuestImage.SavedEvent;
import dev.space.vmm.simulated.GuestImage.SavedProcess;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/// Numbered output of a process: the newest events up to a bound, and of all that ever were, how
/// many bytes they held, so that a gap can say what is missing. Not safe for use by several
/// threads.
final class EventLog {

  private final long bytesMax;
  private final int overhead;
  private final List<OutputEvent> events = new ArrayList<>();
  private int head;
  private long firstSeq = 1;
  private long kept;
  private long[] ends;
  private int count;

  EventLog(long bytesMax, int overhead) {
    this.bytesMax = bytesMax;
    this.overhead = overhead;
    this.ends = new long[16];
  }

  EventLog(long bytesMax, int overhead, SavedProcess saved) {
    this(bytesMax, overhead);
    this.firstSeq = saved.firstSeq();
    this.ends = saved.ends();
    this.count = ends.length;
    for (SavedEvent event : saved.events()) {
      OutputEvent restored = restore(event);
      events.add(restored);
      kept += size(restored) + overhead;
    }
  }

  List<SavedEvent> save() {
    return events.subList(head, events.size()).stream().map(EventLog::save).toList();
  }

  long[] ends() {
    return Arrays.copyOf(ends, count);
  }

  long firstSeq() {
    return firstSeq;
  }

  long lastSeq() {
    return count;
  }

  /// Bytes of all output so far.
  long end() {
    return endOf(count);
  }

  /// Bytes of all output up to and with an event.
  long endOf(long seq) {
    return seq <= 0 || count == 0 ? 0 : ends[(int) Math.min(seq, count) - 1];
  }

  /// Appends, and drops the oldest beyond the bound which every reader has.
  ///
  /// @param slowest bytes that the slowest live reader has
  void add(OutputEvent event, long slowest) {
    if (count == ends.length) {
      ends = Arrays.copyOf(ends, 2 * count);
    }
    ends[count] = end() + size(event);
    count++;
    events.add(event);
    kept += size(event) + overhead;
    while (kept > bytesMax && head < events.size() - 1 && endOf(firstSeq) <= slowest) {
      kept -= size(events.get(head)) + overhead;
      head++;
      firstSeq++;
    }
    if (head > 64 && head > events.size() / 2) {
      events.subList(0, head).clear();
      head = 0;
    }
  }

  /// The event after one, or a gap when it is gone. There must be a later one.
  OutputEvent after(long seq) {
    if (seq + 1 < firstSeq) {
      OutputEvent oldest = events.get(head);
      return new OutputEvent.Gap(
          firstSeq - 1, oldest.atMillis(), seq + 1, endOf(firstSeq - 1) - endOf(seq));
    }
    return events.get(head + (int) (seq + 1 - firstSeq));
  }

  private static long size(OutputEvent event) {
    return event instanceof OutputEvent.Bytes bytes ? bytes.data().length : 0;
  }

  private static SavedEvent save(OutputEvent event) {
    return switch (event) {
      case OutputEvent.Started(long seq, long at, int pid) ->
          new SavedEvent("started", seq, at, null, null, pid, null);
      case OutputEvent.Bytes(long seq, long at, OutputEvent.Stream stream, byte[] data) ->
          new SavedEvent("bytes", seq, at, stream, data, 0, null);
      case OutputEvent.Gap(long seq, long at, long _, long _) ->
          new SavedEvent("gap", seq, at, null, null, 0, null);
      case OutputEvent.Exited(long seq, long at, ProcessExit exit) ->
          new SavedEvent("exited", seq, at, null, null, 0, exit);
    };
  }

  private static OutputEvent restore(SavedEvent saved) {
    return switch (saved.kind()) {
      case "started" -> new OutputEvent.Started(saved.seq(), saved.at(), saved.pid());
      case "bytes" ->
          new OutputEvent.Bytes(
              saved.seq(),
              saved.at(),
              Objects.requireNonNull(saved.stream()),
              Objects.requireNonNull(saved.data()));
      case "exited" ->
          new OutputEvent.Exited(saved.seq(), saved.at(), Objects.requireNonNull(saved.exit()));
      default -> throw new IllegalArgumentException(saved.kind());
    };
  }
}
