package dev.space.vmm.qemu;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.util.BitSet;
import java.util.Optional;

/// Gives every VM process a user id of its own, so that one that a guest took over can't reach the
/// next. Ids of VMs that a former daemon left are taken when those are adopted.
final class UserIds {

  private final Optional<QemuSettings.UserRange> range;
  private final BitSet taken = new BitSet();

  UserIds(Optional<QemuSettings.UserRange> range) {
    this.range = range;
  }

  /// A free id; empty when VMs run as who the daemon runs as.
  synchronized Optional<Integer> take() {
    if (range.isEmpty()) {
      return Optional.empty();
    }
    int slot = taken.nextClearBit(0);
    if (slot >= range.get().count()) {
      throw Problem.of(ErrorCode.CAPACITY, "All user ids for VMs are taken.")
          .because(range.get().count() + " VMs run")
          .remedy("Give the QEMU driver a larger range of user ids.")
          .toException();
    }
    taken.set(slot);
    return Optional.of(range.get().first() + slot);
  }

  /// Takes an id that a process has already.
  synchronized void adopt(int id) {
    range.map(r -> id - r.first()).filter(this::inRange).ifPresent(taken::set);
  }

  synchronized void release(Optional<Integer> id) {
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
