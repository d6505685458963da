package dev.space.node;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.template.Resources;
import dev.space.host.DiskSpace;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// What the node has promised to VMs. Nothing of a VM is made before its promise.
final class Admission {

  private static final Logger log = LoggerFactory.getLogger(Admission.class);

  private final NodeSettings settings;
  private volatile BooleanSupplier evict = () -> false;
  private final Map<Machine, Resources> promised = new HashMap<>();
  private long memory;

  Admission(NodeSettings settings) {
    this.settings = settings;
  }

  /// Who can end an idle VM, and says whether one was ended.
  void onShortage(BooleanSupplier next) {
    evict = next;
  }

  /// Promises a machine what its VM needs; idle VMs give way to it. Promising twice is one promise.
  ///
  /// @throws dev.space.core.error.SpaceException CAPACITY or DISK_FULL with the figures
  void promise(Machine machine, Resources resources) {
    while (true) {
      try {
        promiseSpare(machine, resources);
        return;
      } catch (SpaceException e) {
        if (e.code() != ErrorCode.CAPACITY || !evict.getAsBoolean()) {
          throw e;
        }
        log.info("An idle VM made room for {}", machine.id());
      }
    }
  }

  /// Promises only what nobody else could want.
  void promiseSpare(Machine machine, Resources resources) {
    requireDisk(0);
    synchronized (promised) {
      if (promised.containsKey(machine)) {
        return;
      }
      requireRoom(resources);
      force(machine, resources);
    }
  }

  private void requireRoom(Resources resources) {
    if (promised.size() >= settings.vmsMax()) {
      throw Problem.of(ErrorCode.CAPACITY, "The node runs as many VMs as it may")
          .because(promised.size() + " of " + settings.vmsMax() + " VMs exist")
          .remedy("Delete or suspend sandboxes, or raise limits.vms_max.")
          .toException();
    }
    long more = bytes(resources);
    if (memory + more > memoryMax()) {
      throw Problem.of(ErrorCode.CAPACITY, "The node has not enough memory left")
          .because(
              mib(memory)
                  + " of "
                  + mib(memoryMax())
                  + " MiB are promised, "
                  + mib(more)
                  + " MiB more are asked for")
          .remedy("Delete or suspend sandboxes, or raise limits.memory_overcommit.")
          .toException();
    }
  }

  /// Counts a VM that exists already, limits or not.
  void force(Machine machine, Resources resources) {
    synchronized (promised) {
      if (promised.putIfAbsent(machine, resources) == null) {
        memory += bytes(resources);
      }
    }
  }

  void release(Machine machine) {
    synchronized (promised) {
      Resources resources = promised.remove(machine);
      if (resources != null) {
        memory -= bytes(resources);
      }
    }
  }

  /// @param more bytes that are about to be written
  /// @throws dev.space.core.error.SpaceException DISK_FULL when less than the reserve would be left
  void requireDisk(long more) {
    long free = diskFree();
    if (free - more < settings.diskReserveBytes()) {
      throw Problem.of(ErrorCode.DISK_FULL, "The node's disk is full")
          .because(
              mib(free)
                  + " of "
                  + mib(diskTotal())
                  + " MiB are free, "
                  + mib(more)
                  + " MiB are needed and "
                  + mib(settings.diskReserveBytes())
                  + " MiB are held in reserve")
          .remedy("Delete sandboxes, snapshots or templates, or lower limits.disk_reserve_mib.")
          .toException();
    }
  }

  int vms() {
    synchronized (promised) {
      return promised.size();
    }
  }

  long memory() {
    synchronized (promised) {
      return memory;
    }
  }

  long memoryMax() {
    return (long) (settings.memoryBytes() * settings.memoryOvercommit());
  }

  long diskFree() {
    return disk().freeBytes();
  }

  long diskTotal() {
    return disk().totalBytes();
  }

  private DiskSpace disk() {
    try {
      return DiskSpace.of(settings.dataDir());
    } catch (IOException e) {
      throw Folders.failure("The data directory's free space can't be read", e);
    }
  }

  private static long bytes(Resources resources) {
    return (long) resources.memoryMib() << 20;
  }

  private static long mib(long bytes) {
    return bytes >> 20;
  }
}
