package dev.space.core.usage;

import dev.space.core.error.SpaceException;
import dev.space.core.guest.GuestStats;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;

/// The last samples of one sandbox. One question at a time.
final class UsageTrack {

  private final int most;
  private final ReentrantLock asking = new ReentrantLock();
  private final ArrayDeque<UsageSample> samples = new ArrayDeque<>();

  UsageTrack(int most) {
    this.most = most;
  }

  /// Takes a sample unless one is being taken.
  void trySample(InstantSource clock, Supplier<GuestStats> guest) {
    if (asking.tryLock()) {
      try {
        take(clock.instant(), guest);
      } finally {
        asking.unlock();
      }
    }
  }

  /// Takes a sample, or gives the last one when it is as young as that; empty when the guest
  /// doesn't answer.
  Optional<UsageSample> sample(InstantSource clock, Supplier<GuestStats> guest, Duration fresh) {
    asking.lock();
    try {
      Instant now = clock.instant();
      Optional<UsageSample> last = last();
      if (last.filter(s -> s.at().plus(fresh).isAfter(now)).isPresent()) {
        return last;
      }
      return take(now, guest);
    } finally {
      asking.unlock();
    }
  }

  private Optional<UsageSample> take(Instant at, Supplier<GuestStats> guest) {
    GuestStats stats;
    try {
      stats = guest.get();
    } catch (SpaceException e) {
      return Optional.empty();
    }
    var sample = UsageSample.after(last(), at, stats);
    synchronized (samples) {
      if (samples.size() == most) {
        samples.removeFirst();
      }
      samples.addLast(sample);
    }
    return Optional.of(sample);
  }

  private Optional<UsageSample> last() {
    synchronized (samples) {
      return Optional.ofNullable(samples.peekLast());
    }
  }

  List<UsageSample> latest(int count) {
    synchronized (samples) {
      var all = new ArrayList<>(samples);
      return List.copyOf(all.subList(Math.max(0, all.size() - count), all.size()));
    }
  }
}
