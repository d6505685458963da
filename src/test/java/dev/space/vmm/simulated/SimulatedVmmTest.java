package dev.space.vmm.simulated;

import dev.space.core.guest.GuestConnector;
import dev.space.core.template.Resources;
import dev.space.core.vm.Vm;
import dev.space.core.vm.VmSpec;
import dev.space.core.vm.Vmm;
import dev.space.vmm.VmmContractTest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.Optional;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.io.TempDir;

/// The contract on simulated VMs: what the tests of all that is above the drivers rest on.
class SimulatedVmmTest extends VmmContractTest {

  private static final Resources SHAPE = new Resources(1, 128, 64);
  private static final int COUNTED_MAX = 5000;

  @TempDir private Path dir;
  private final SimulatedHost host = new SimulatedHost(InstantSource.system(), new Random(7));
  private final Vmm vmm = host.vmm();
  private Optional<Frozen> frozen = Optional.empty();

  @Override
  protected Vmm vmm() {
    return vmm;
  }

  @Override
  protected Vmm another() {
    return host.vmm();
  }

  @Override
  protected void forget(Vm vm) {
    vm.forget();
  }

  @Override
  protected GuestConnector connector() {
    return host.connector();
  }

  /// The simulated shell has no loops.
  @Override
  protected String counting() {
    return IntStream.rangeClosed(1, COUNTED_MAX)
        .mapToObj(i -> "echo " + i + "; sleep 0.02")
        .collect(Collectors.joining("; "));
  }

  @Override
  protected Path root() {
    return dir.resolve("vms");
  }

  @Override
  protected VmSpec newSpec(String name) throws IOException {
    Path home = Files.createDirectories(root().resolve(name));
    Path disk = home.resolve("disk.img");
    new SimulatedDisks().makePristine(disk, SHAPE.diskMib());
    return new VmSpec(name, home, SHAPE, dir.resolve("root.img"), disk);
  }

  @Override
  protected Frozen frozen() throws IOException {
    if (frozen.isEmpty()) {
      frozen = Optional.of(freeze(Files.createDirectories(dir.resolve("frozen"))));
    }
    return frozen.get();
  }
}
