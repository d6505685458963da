package dev.space.vmm.simulated;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.vm.Isolation;
import dev.space.core.vm.MemoryImage;
import dev.space.core.vm.Vm;
import dev.space.core.vm.VmIdentity;
import dev.space.core.vm.VmSpec;
import dev.space.core.vm.Vmm;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;

/// A driver whose VMs are objects in this process. It keeps to the contract strictly, so that a
/// caller that mixes up files fails here as it would with a real monitor: state belongs to one
/// memory and to one content of the disk, and a disk to one VM.
final class SimulatedVmm implements Vmm {

  static final String FORMAT = "simulated-1";

  private final SimulatedHost host;

  SimulatedVmm(SimulatedHost host) {
    this.host = host;
  }

  @Override
  public Isolation isolation() {
    return Isolation.SIMULATED;
  }

  @Override
  public String snapshotFormat() {
    return FORMAT;
  }

  @Override
  public String bootFingerprint() {
    return "0";
  }

  @Override
  public Vm boot(VmSpec spec) {
    host.fault(SimulatedHost.Step.BOOT, spec);
    SimulatedVm vm = host.begin(spec, identity -> SimulatedVm.boot(host, spec, identity));
    vm.resume();
    return vm;
  }

  @Override
  public Vm restore(VmSpec spec, MemoryImage image) {
    host.fault(SimulatedHost.Step.RESTORE, spec);
    SimulatedVm.State state = GuestImage.parse(read(image.state()), SimulatedVm.State.class);
    GuestImage base = GuestImage.read(read(image.memory()));
    GuestImage memory = changed(base, image);
    if (!memory.fingerprint().equals(state.memory())) {
      throw failure("The memory is not the one the state was saved with");
    }
    if (!state.shape().equals(spec.resources().shape())) {
      throw failure("The state is of a VM of shape " + state.shape());
    }
    return host.begin(
        spec, identity -> SimulatedVm.restore(host, spec, identity, memory, base, image, state));
  }

  private static GuestImage changed(GuestImage base, MemoryImage image) {
    return image
        .changes()
        .map(file -> base.with(GuestImage.parse(read(file), GuestImage.Changes.class)))
        .orElse(base);
  }

  @Override
  public Optional<Vm> adopt(VmSpec spec, VmIdentity identity, Duration deadline) {
    return host.find(identity)
        .filter(vm -> vm.spec().directory().equals(spec.directory()))
        .map(vm -> vm);
  }

  @Override
  public Map<Path, VmIdentity> running(Path root) {
    return host.running(root);
  }

  @Override
  public void materialise(MemoryImage image, Path target) {
    GuestImage base = GuestImage.read(read(image.memory()));
    write(target, changed(base, image).bytes());
  }

  static byte[] read(Path file) {
    try {
      return Files.readAllBytes(file);
    } catch (IOException e) {
      throw Problem.of(ErrorCode.VMM_FAILED, "Reading " + file + " failed")
          .because(e.toString())
          .toException(e);
    }
  }

  static void write(Path file, byte[] data) {
    try {
      Files.write(
          file,
          data,
          StandardOpenOption.CREATE,
          StandardOpenOption.TRUNCATE_EXISTING,
          StandardOpenOption.WRITE);
    } catch (IOException e) {
      throw Problem.of(ErrorCode.VMM_FAILED, "Writing " + file + " failed")
          .because(e.toString())
          .toException(e);
    }
  }

  static dev.space.core.error.SpaceException failure(String cause) {
    return Problem.of(ErrorCode.VMM_FAILED, "The VM can't be restored")
        .because(cause)
        .toException();
  }
}
