package dev.space.vmm.firecracker;

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
import dev.space.guest.GrpcGuestConnector;
import dev.space.host.Processes;
import dev.space.image.TestImages;
import dev.space.vmm.VmmContractTest;
import dev.space.vmm.firecracker.FirecrackerSettings.DiskRate;
import dev.space.vmm.firecracker.FirecrackerSettings.Jail;
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
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/// The contract with real guests, and what is Firecracker's own. A subclass says which Firecracker.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class FirecrackerContract extends VmmContractTest {

  private static final Resources SHAPE = new Resources(1, 256, 256);

  /// The fake runs guests in software, on machines that do other things as well.
  private static final Duration CALL = Duration.ofSeconds(30);

  @TempDir static Path dir;
  private @Nullable FirecrackerVmm shared;
  private @Nullable Frozen frozen;

  abstract String binary();

  abstract Jail jail();

  private FirecrackerVmm driver() {
    return FirecrackerVmm.open(
        new FirecrackerSettings(
            binary(),
            jail(),
            TestImages.vmlinux(),
            TestImages.boot().initramfs(),
            CALL,
            DiskRate.NONE,
            Optional.empty()),
        new Processes(System.getenv()));
  }

  @Override
  protected FirecrackerVmm vmm() {
    FirecrackerVmm known = shared;
    if (known == null) {
      known = driver();
      shared = known;
    }
    return known;
  }

  @Override
  protected FirecrackerVmm another() {
    return driver();
  }

  @Override
  protected void forget(Vm vm) {
    vm.forget();
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
    StateFile.Content content = StateFile.read(good.state());
    // Damaged within what the driver can't know: Firecracker itself refuses it.
    byte[] state = content.state();
    state[state.length / 2] ^= 0x55;
    Path bad = dir.resolve("bad-state");
    StateFile.write(bad, content.manifest(), state);
    VmSpec spec = newSpec("bad");
    assertCode(
        ErrorCode.SNAPSHOT_DAMAGED,
        () -> vmm().restore(spec, new MemoryImage(bad, good.memory(), Optional.empty())));
    assertThat(vmm().running(root())).isEmpty();
    assertThat(spec.directory().resolve("fc")).doesNotExist();

    Path torn = dir.resolve("torn-state");
    Files.copy(good.state(), torn);
    try (FileChannel out = FileChannel.open(torn, StandardOpenOption.WRITE)) {
      out.write(ByteBuffer.allocate(64), 512);
    }
    assertCode(
        ErrorCode.SNAPSHOT_DAMAGED,
        () -> vmm().restore(spec, new MemoryImage(torn, good.memory(), Optional.empty())));
    assertThat(vmm().running(root())).isEmpty();
  }

  @Test
  void aStateOfAnotherHostIsRefusedWithTheReason() throws Exception {
    MemoryImage good = frozen().image();
    StateFile.Content content = StateFile.read(good.state());
    Compatibility here = content.manifest().compatibility();
    Path foreign = dir.resolve("foreign-state");
    StateFile.write(
        foreign,
        new StateFile.Manifest(
            1,
            content.manifest().vmm(),
            new Compatibility(here.release(), here.format(), "Acme-1-2-3", "0x9", here.kernel()),
            DiskRate.NONE),
        content.state());
    VmSpec spec = newSpec("foreign");
    assertThatThrownBy(
            () -> vmm().restore(spec, new MemoryImage(foreign, good.memory(), Optional.empty())))
        .asInstanceOf(type(SpaceException.class))
        .satisfies(e -> assertThat(e.code()).isEqualTo(ErrorCode.SNAPSHOT_DAMAGED))
        .satisfies(
            e ->
                assertThat(e.problem().cause().orElse(""))
                    .contains("processor Acme-1-2-3", "microcode 0x9")
                    .doesNotContain("host kernel"));
    assertThat(vmm().running(root())).isEmpty();
  }

  @Test
  void nothingOfARunIsLeftWhenItsVmIsGone() throws Exception {
    Frozen base = frozen();
    VmSpec spec = newSpec("clean");
    Files.deleteIfExists(spec.disk());
    Files.copy(base.disk(), spec.disk());
    Vm vm = vmm().restore(spec, base.image());
    assertThat(spec.directory().resolve("fc")).isDirectory();
    vm.kill();
    assertThat(spec.directory().resolve("fc")).doesNotExist();
    assertThat(spec.disk()).exists();
    assertThat(vmm().counters().get("restores")).isPositive();
  }

  static void assertCode(
      ErrorCode code, org.assertj.core.api.ThrowableAssert.ThrowingCallable call) {
    assertThatThrownBy(call)
        .asInstanceOf(type(SpaceException.class))
        .extracting(SpaceException::code)
        .isEqualTo(code);
  }
}
