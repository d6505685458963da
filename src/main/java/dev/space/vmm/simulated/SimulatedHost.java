package dev.space.vmm.simulated;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.GuestConnector;
import dev.space.core.vm.VmIdentity;
import dev.space.core.vm.VmSpec;
import dev.space.core.vm.Vmm;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.random.RandomGenerator;

/// A host's table of simulated VM processes. It outlives drivers and nodes, as real processes do: a
/// driver made later on the same host finds them again.
public final class SimulatedHost {

  /// Where a fault can be put.
  public enum Step {
    BOOT,
    RESTORE,
    PAUSE,
    RESUME,
    SAVE,
    MATERIALISE,
    CONNECT,
    ADOPT
  }

  /// Called before each step; may throw a `SpaceException` to make it fail, or wait.
  @FunctionalInterface
  public interface Fault {
    void before(Step step, VmSpec spec);

    Fault NONE = (step, spec) -> {};
  }

  private final InstantSource clock;
  private final RandomGenerator random;
  private final Map<Long, SimulatedVm> processes = new HashMap<>();
  private final Map<Path, Long> disks = new HashMap<>();
  private volatile Fault fault = Fault.NONE;
  private long nextPid = 1_000_000;

  /// @param random where guests get their identity and entropy from
  public SimulatedHost(InstantSource clock, RandomGenerator random) {
    this.clock = clock;
    this.random = random;
  }

  /// A driver on this host.
  public Vmm vmm() {
    return new SimulatedVmm(this);
  }

  /// Links to the guests of this host.
  public GuestConnector connector() {
    return new SimulatedConnector(this);
  }

  /// Puts a fault into every later step, until another takes its place.
  public void inject(Fault next) {
    fault = next;
  }

  /// The VMs that live now.
  public List<VmSpec> alive() {
    synchronized (processes) {
      return processes.values().stream().map(SimulatedVm::spec).toList();
    }
  }

  /// Ends a VM as the kernel's out-of-memory killer would. Does nothing when there is none.
  public void killBehindTheBack(Path directory) {
    find(directory).ifPresent(vm -> vm.end(dev.space.core.vm.VmExit.Kind.VMM_DIED, "killed"));
  }

  /// Breaks a VM's guest link, as a broken socket would. Does nothing when there is none.
  public void breakLink(Path directory) {
    find(directory).ifPresent(SimulatedVm::breakLink);
  }

  void fault(Step step, VmSpec spec) {
    fault.before(step, spec);
  }

  long millis() {
    return clock.millis();
  }

  RandomGenerator random() {
    return random;
  }

  SimulatedVm begin(VmSpec spec, SimulatedVm.Maker maker) {
    Path disk = spec.disk().toAbsolutePath().normalize();
    long pid;
    synchronized (processes) {
      Long owner = disks.get(disk);
      if (owner != null) {
        throw Problem.of(ErrorCode.VMM_FAILED, "The disk " + disk + " is in use")
            .because("process " + owner + " has it open")
            .toException();
      }
      pid = nextPid++;
      disks.put(disk, pid);
    }
    try {
      SimulatedVm vm = maker.make(new VmIdentity(pid, 7 * pid));
      synchronized (processes) {
        processes.put(pid, vm);
      }
      return vm;
    } catch (RuntimeException e) {
      synchronized (processes) {
        disks.remove(disk, pid);
      }
      throw e;
    }
  }

  void ended(SimulatedVm vm) {
    synchronized (processes) {
      processes.remove(vm.identity().pid());
      disks.remove(vm.spec().disk().toAbsolutePath().normalize(), vm.identity().pid());
    }
  }

  Optional<SimulatedVm> find(VmIdentity identity) {
    synchronized (processes) {
      return Optional.ofNullable(processes.get(identity.pid()))
          .filter(vm -> vm.identity().equals(identity));
    }
  }

  private Optional<SimulatedVm> find(Path directory) {
    synchronized (processes) {
      return processes.values().stream()
          .filter(vm -> vm.spec().directory().equals(directory))
          .findFirst();
    }
  }

  Map<Path, VmIdentity> running(Path root) {
    Map<Path, VmIdentity> out = new HashMap<>();
    synchronized (processes) {
      processes
          .values()
          .forEach(
              vm -> {
                Path directory = vm.spec().directory();
                if (root.equals(directory.getParent())) {
                  out.put(directory, vm.identity());
                }
              });
    }
    return out;
  }
}
