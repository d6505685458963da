package dev.space.vmm.qemu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.type;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.GuestConnector;
import dev.space.core.template.Resources;
import dev.space.core.vm.MemoryImage;
import dev.space.core.vm.Vm;
import dev.space.core.vm.VmSpec;
import dev.space.core.vm.Vmm;
import dev.space.guest.GrpcGuestConnector;
import dev.space.host.Processes;
import dev.space.image.BootFiles;
import dev.space.image.TestImages;
import dev.space.vmm.VmmContractTest;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The contract on real VMs, and what is QEMU's own.
@Tag("vm")
@Tag("slow")
class QemuVmmTest extends VmmContractTest {

  private static final Resources SHAPE = new Resources(1, 256, 256);

  @TempDir static Path dir;
  private static @Nullable QemuVmm shared;
  private static @Nullable Frozen frozen;

  private static QemuVmm driver(BootFiles boot) {
    return QemuVmm.open(settings("qemu-system-x86_64", boot), processes());
  }

  /// As root every VM gets a user id of its own.
  private static QemuSettings settings(String binary, BootFiles boot) {
    boolean root = System.getProperty("user.name").equals("root");
    return new QemuSettings(
        binary,
        boot.kernel(),
        boot.initramfs(),
        QemuSettings.Acceleration.AUTO,
        dir.resolve("cache"),
        root ? Optional.of(new dev.space.host.UserIds.Range(200_000, 100)) : Optional.empty());
  }

  private static Processes processes() {
    return new Processes(System.getenv());
  }

  @Override
  protected QemuVmm vmm() {
    QemuVmm known = shared;
    if (known == null) {
      known = driver(TestImages.boot());
      shared = known;
    }
    return known;
  }

  @Override
  protected Vmm another() {
    return driver(TestImages.boot());
  }

  @Override
  protected void forget(Vm vm) {
    ((QemuVm) vm).forget();
  }

  @Override
  protected GuestConnector connector() {
    return new GrpcGuestConnector(InstantSource.system(), new SecureRandom());
  }

  @Override
  protected Path root() {
    return dir.resolve("vms");
  }

  @Override
  protected VmSpec newSpec(String name) throws IOException {
    Path home = Files.createDirectories(root().resolve(name));
    Path disk = home.resolve("disk.img");
    TestImages.disks().makeWritable(disk, SHAPE.diskMib());
    return new VmSpec(name, home, SHAPE, TestImages.root(), disk);
  }

  @Override
  protected Frozen frozen() throws IOException {
    Frozen known = frozen;
    if (known == null) {
      known = freeze(Files.createDirectories(dir.resolve("frozen")));
      frozen = known;
    }
    return known;
  }

  @Test
  void aDamagedStateIsRefusedAndLeavesNoProcess() throws Exception {
    MemoryImage good = frozen().image();
    Path bad = dir.resolve("bad-state");
    Files.copy(good.state(), bad);
    try (FileChannel out = FileChannel.open(bad, StandardOpenOption.WRITE)) {
      out.write(ByteBuffer.allocate(4096), 0);
    }
    VmSpec spec = newSpec("bad");
    assertCode(
        ErrorCode.SNAPSHOT_DAMAGED,
        () -> vmm().restore(spec, new MemoryImage(bad, good.memory(), Optional.empty())));
    assertThat(vmm().running(root())).isEmpty();
  }

  @Test
  void aDamagedKernelIsAnErrorThatSaysSo() throws Exception {
    Path kernel = dir.resolve("kernel");
    Files.write(kernel, new byte[10_000]);
    BootFiles boot = TestImages.boot();
    var broken =
        QemuVmm.open(
            settings("qemu-system-x86_64", new BootFiles(kernel, boot.initramfs(), "x")),
            processes());
    VmSpec spec = newSpec("broken");
    assertThatThrownBy(
            () -> {
              Vm vm = broken.boot(spec);
              try {
                connector().greet(vm, Duration.ofSeconds(3)).close();
              } finally {
                vm.kill();
              }
            })
        .asInstanceOf(type(SpaceException.class))
        .extracting(SpaceException::code)
        .isIn(ErrorCode.VMM_FAILED, ErrorCode.GUEST_UNREACHABLE, ErrorCode.SANDBOX_DIED);
    assertThat(broken.running(root())).isEmpty();
  }

  /// Where the kernel lets nobody look into a process, memory is saved and loaded as a whole; and
  /// what such a VM has changed since is never taken for a change of another image.
  @Test
  void memoryIsSavedAsAWholeWhereNobodyMayLookIntoAProcess() throws Exception {
    Frozen base = frozen();
    QemuVmm blind =
        QemuVmm.open(settings("qemu-system-x86_64", TestImages.boot()), processes(), false);
    Path at = Files.createDirectories(dir.resolve("blind-saved"));
    MemoryImage saved = written(blind, "blind1", base.image(), base.disk(), at, "one");
    // In the stream of one and again of the other: each kind loads what the other saved.
    Path next = Files.createDirectories(dir.resolve("seeing-saved"));
    MemoryImage changes =
        written(vmm(), "seeing", saved, at.resolve("disk"), next, "cat /dev/shm/f && echo two");
    Path last = Files.createDirectories(dir.resolve("own-saved"));
    MemoryImage whole =
        written(
            blind, "blind2", changes, next.resolve("disk"), last, "cat /dev/shm/f && echo three");
    written(
        vmm(),
        "seeing2",
        whole,
        last.resolve("disk"),
        Files.createDirectories(dir.resolve("end-saved")),
        "grep -c . /dev/shm/f && echo four");
  }

  /// Restores, writes to the guest's memory, saves.
  private MemoryImage written(
      QemuVmm driver, String name, MemoryImage image, Path disk, Path into, String say)
      throws Exception {
    VmSpec spec = newSpec(name);
    Files.deleteIfExists(spec.disk());
    Files.copy(disk, spec.disk());
    Vm vm = driver.restore(spec, image);
    try {
      vm.resume();
      try (var link =
          connector()
              .connect(
                  vm,
                  System.nanoTime(),
                  new dev.space.core.guest.Guest.Adoption(
                      false, name, name, java.util.Map.of(), Optional.empty(), Optional.empty()),
                  UP)) {
        String script =
            say.contains("&&") ? say + " >> /dev/shm/f" : "echo " + say + " > /dev/shm/f";
        assertThat(status(link, name, script)).isZero();
      }
      vm.pause();
      Path changes = into.resolve("changes");
      vm.save(into.resolve("state"), new Vm.MemoryTarget.Changes(changes));
      Files.copy(spec.disk(), into.resolve("disk"));
      return new MemoryImage(into.resolve("state"), image.memory(), Optional.of(changes));
    } finally {
      vm.kill();
    }
  }

  private static int status(dev.space.core.guest.GuestLink link, String id, String script) {
    link.start(dev.space.core.guest.ProcessSpec.of(id, java.util.List.of("sh", "-c", script)));
    int[] code = {-1};
    link.output(
        id,
        0,
        event -> {
          if (event instanceof dev.space.core.guest.OutputEvent.Exited exited) {
            code[0] = exited.exit().code();
          }
        });
    return code[0];
  }

  @Test
  void aMissingBinaryIsAPrerequisite() {
    assertCode(
        ErrorCode.PREREQUISITE_MISSING,
        () -> QemuVmm.open(settings("no-such-qemu", TestImages.boot()), processes()));
  }

  /// A guest that ended while no daemon looked is still told from one that was killed.
  @Test
  void aPowerOffBetweenTwoDaemonsIsToldByTheNext() throws Exception {
    Frozen base = frozen();
    VmSpec spec = newSpec("between");
    Files.deleteIfExists(spec.disk());
    Files.copy(base.disk(), spec.disk());
    Vm vm = vmm().restore(spec, base.image());
    vm.resume();
    try (var link =
        connector()
            .connect(
                vm,
                100,
                new dev.space.core.guest.Guest.Adoption(
                    false, "b", "b", java.util.Map.of(), Optional.empty(), Optional.empty()),
                UP)) {
      forget(vm);
      link.shutdown(Duration.ofMillis(100));
      link.closed().get(20, TimeUnit.SECONDS);
    } catch (SpaceException | java.util.concurrent.TimeoutException _) {
      // The process stands with its port open: only the answer matters, and it may be lost.
    }
    Vm adopted = another().adopt(spec, vm.identity(), UP).orElseThrow();
    try {
      assertThat(adopted.exit().get(20, TimeUnit.SECONDS).kind())
          .isEqualTo(dev.space.core.vm.VmExit.Kind.STOPPED);
    } finally {
      adopted.kill();
    }
  }

  private static void assertCode(
      ErrorCode code, org.assertj.core.api.ThrowableAssert.ThrowingCallable call) {
    assertThatThrownBy(call)
        .asInstanceOf(type(SpaceException.class))
        .extracting(SpaceException::code)
        .isEqualTo(code);
  }
}
