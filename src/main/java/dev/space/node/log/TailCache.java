package dev.space.node.log;

import dev.space.core.guest.OutputEvent;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/// The newest events of a log in memory, without holes, so that readers who keep up read no file.
/// What it holds counts into a budget that all logs share. Guarded by the log's lock.
final class TailCache {

  private static final int EVENTS_MAX = 4096;

  /// What an event costs beside its bytes.
  private static final long EVENT_BYTES = 96;

  private final AtomicLong budget;
  private OutputEvent[] ring = new OutputEvent[16];
  private int first;
  private int count;
  private long bytes;
  private long afterSeq;

  /// @param budget bytes that all caches together hold now
  TailCache(AtomicLong budget, long afterSeq) {
    this.budget = budget;
    this.afterSeq = afterSeq;
  }

  /// Readers who have this event or a later one find all that follows here.
  long afterSeq() {
    return afterSeq;
  }

  long bytes() {
    return bytes;
  }

  boolean full() {
    return count >= EVENTS_MAX;
  }

  boolean isEmpty() {
    return count == 0;
  }

  void add(OutputEvent event) {
    if (count == ring.length) {
      grow();
    }
    ring[(first + count) % ring.length] = event;
    count++;
    account(cost(event));
  }

  void dropFirst() {
    OutputEvent event = ring[first];
    clear(first);
    first = (first + 1) % ring.length;
    count--;
    afterSeq = event.seq();
    account(-cost(event));
    if (count == 0) {
      ring = new OutputEvent[16];
      first = 0;
    }
  }

  /// The events after one, at most about `bytesMax` of them, at least one.
  List<OutputEvent> after(long seq, long bytesMax) {
    int low = 0;
    int high = count;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (at(middle).seq() <= seq) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    var events = new ArrayList<OutputEvent>(Math.min(count - low, 64));
    long taken = 0;
    for (int i = low; i < count && (taken == 0 || taken < bytesMax); i++) {
      events.add(at(i));
      taken += cost(at(i));
    }
    return events;
  }

  private OutputEvent at(int index) {
    return ring[(first + index) % ring.length];
  }

  @SuppressWarnings("NullAway") // The slot is never read before it is filled again.
  private void clear(int slot) {
    ring[slot] = null;
  }

  private void grow() {
    var larger = new OutputEvent[ring.length * 2];
    for (int i = 0; i < count; i++) {
      larger[i] = at(i);
    }
    ring = larger;
    first = 0;
  }

  private void account(long change) {
    bytes += change;
    budget.addAndGet(change);
  }

  private static long cost(OutputEvent event) {
    return EVENT_BYTES + (event instanceof OutputEvent.Bytes output ? output.data().length : 0);
  }
}
