package dev.space.host;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.util.BitSet;
import java.util.Optional;

/// Gives every VM process a user id of its own, so that one that a guest took over can't reach the
/// next. Ids of VMs that a former daemon left are taken when those are adopted.
public final class UserIds {

  /// User ids (and group ids of the same number) that belong to nobody else on the host.
  ///
  /// @param first at least 1000
  /// @param count how many VMs can run at once
  public record Range(int first, int count) {}

  private final Optional<Range> range;
  private final BitSet taken = new BitSet();

  /// @param range empty when VMs run as who the daemon runs as
  public UserIds(Optional<Range> range) {
    this.range = range;
  }

  /// A free id; empty when VMs run as who the daemon runs as.
  ///
  /// @throws dev.space.core.error.SpaceException CAPACITY when all are taken
  public synchronized Optional<Integer> take() {
    if (range.isEmpty()) {
      return Optional.empty();
    }
    int slot = taken.nextClearBit(0);
    if (slot >= range.get().count()) {
      throw Problem.of(ErrorCode.CAPACITY, "All user ids for VMs are taken.")
          .because(range.get().count() + " VMs run")
          .remedy("Raise limits.vms_max, which is how many user ids there are.")
          .toException();
    }
    taken.set(slot);
    return Optional.of(range.get().first() + slot);
  }

  /// Takes an id that a process has already.
  public synchronized void adopt(int id) {
    range.map(r -> id - r.first()).filter(this::inRange).ifPresent(taken::set);
  }

  /// Gives an id back whose process is gone.
  public synchronized void release(Optional<Integer> id) {
    if (id.isPresent() && range.isPresent()) {
      int slot = id.get() - range.get().first();
      if (inRange(slot)) {
        taken.clear(slot);
      }
    }
  }

  private boolean inRange(int slot) {
    return slot >= 0 && range.isPresent() && slot < range.get().count();
  }
}
