package dev.space.vmm.firecracker;

import static dev.space.vmm.firecracker.FirecrackerContract.assertCode;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.template.Resources;
import dev.space.core.vm.MemoryImage;
import dev.space.core.vm.Vm;
import dev.space.core.vm.Vm.MemoryTarget;
import dev.space.core.vm.VmExit;
import dev.space.core.vm.VmSpec;
import dev.space.host.Processes;
import dev.space.host.UserIds;
import dev.space.vmm.firecracker.FirecrackerSettings.DiskRate;
import dev.space.vmm.firecracker.FirecrackerSettings.Jail;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What goes wrong, and what is left over, against the fake without a guest.
@Tag("slow")
class FirecrackerFaultsTest {

  private static final int ROUNDS = 500;
  private static final int AT_ONCE = 2;

  @TempDir Path dir;
  private FakeFirecracker.Installed fake = new FakeFirecracker.Installed(Path.of(""), Path.of(""));
  private final List<Vm> vms = new ArrayList<>();

  @BeforeEach
  void install() throws IOException {
    fake = FakeFirecracker.install(dir.resolve("bin"), "{}");
    for (String name : List.of("vmlinux", "initramfs", "root.img")) {
      // Enough of an ELF file to be taken for a kernel.
      Files.write(dir.resolve(name), ByteBuffer.allocate(4096).putInt(0x7f454c46).array());
    }
    Files.createDirectories(dir.resolve("vms"));
  }

  @AfterEach
  void kill() {
    vms.forEach(Vm::kill);
  }

  private FirecrackerVmm driver(Jail jail, Duration call, DiskRate rate) {
    return FirecrackerVmm.open(
        new FirecrackerSettings(
            fake.firecracker().toString(),
            jail,
            dir.resolve("vmlinux"),
            dir.resolve("initramfs"),
            call,
            rate,
            Optional.empty()),
        new Processes(System.getenv()));
  }

  private FirecrackerVmm driver() {
    return driver(new Jail.None(), Duration.ofSeconds(20), DiskRate.NONE);
  }

  private Jail jailer() {
    Assumptions.assumeTrue(System.getProperty("user.name").equals("root"), "a jailer needs root");
    return new Jail.Jailer(fake.jailer().toString(), new UserIds.Range(220_000, 10));
  }

  private VmSpec spec(String name) throws IOException {
    Path home = Files.createDirectories(dir.resolve("vms").resolve(name));
    try (RandomAccessFile disk = new RandomAccessFile(home.resolve("disk.img").toFile(), "rw")) {
      disk.setLength(1 << 20);
    }
    return new VmSpec(
        name, home, new Resources(1, 128, 64), dir.resolve("root.img"), home.resolve("disk.img"));
  }

  private Vm boot(FirecrackerVmm driver, String name) throws IOException {
    Vm vm = driver.boot(spec(name));
    vms.add(vm);
    return vm;
  }

  private MemoryImage frozen(FirecrackerVmm driver) throws IOException {
    Path into = Files.createDirectories(dir.resolve("frozen"));
    Vm vm = boot(driver, "base");
    vm.pause();
    vm.save(into.resolve("state"), new MemoryTarget.Full(into.resolve("memory")));
    vm.kill();
    return new MemoryImage(into.resolve("state"), into.resolve("memory"), Optional.empty());
  }

  private void nothingIsLeft(FirecrackerVmm driver, String name) {
    assertThat(driver.running(dir.resolve("vms"))).isEmpty();
    assertThat(dir.resolve("vms").resolve(name).resolve("fc")).doesNotExist();
  }

  @Test
  void aStreamReachesTheGuestsPort() throws Exception {
    Vm vm = boot(driver(), "dial");
    try (SocketChannel stream = vm.dial()) {
      stream.write(ByteBuffer.wrap("hello".getBytes(StandardCharsets.US_ASCII)));
      ByteBuffer back = ByteBuffer.allocate(5);
      while (back.hasRemaining() && stream.read(back) >= 0) {
        // Until all is back.
      }
      assertThat(new String(back.array(), StandardCharsets.US_ASCII)).isEqualTo("hello");
    }
  }

  @Test
  void aGuestThatDoesNotListenIsNotReady() throws Exception {
    fake.behave("{\"ready_ms\":60000}");
    Vm vm = boot(driver(), "deaf");
    assertCode(ErrorCode.VMM_FAILED, vm::dial);
    fake.behave("{\"ready_ms\":60000,\"faults\":[{\"call\":\"CONNECT\",\"hang\":true}]}");
    assertCode(ErrorCode.VMM_FAILED, vm::dial);
  }

  @Test
  void aChangeThatIsNotAnsweredEndsTheProcess() throws Exception {
    FirecrackerVmm driver = driver(new Jail.None(), Duration.ofSeconds(1), DiskRate.NONE);
    Vm vm = boot(driver, "hang");
    fake.behave("{\"faults\":[{\"call\":\"PATCH /vm\",\"hang\":true}]}");
    assertThatThrownBy(vm::pause).hasMessageContaining("PATCH /vm");
    assertThat(vm.exit().get(10, TimeUnit.SECONDS).kind()).isEqualTo(VmExit.Kind.VMM_DIED);
    assertCode(ErrorCode.VMM_FAILED, vm::resume);
    nothingIsLeft(driver, "hang");
  }

  @Test
  void aRefusalIsToldWithFirecrackersWordsAndLeavesNothing() throws Exception {
    FirecrackerVmm driver = driver();
    fake.behave(
        "{\"faults\":[{\"call\":\"PUT /drives\",\"status\":400,\"message\":\"no such disk\"}]}");
    assertThatThrownBy(() -> boot(driver, "refused"))
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.problem().cause()).contains("no such disk"));
    nothingIsLeft(driver, "refused");
    fake.behave("{\"faults\":[{\"call\":\"start\",\"exit\":153}]}");
    assertThatThrownBy(() -> boot(driver, "refused"))
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.VMM_FAILED));
    nothingIsLeft(driver, "refused");
    fake.behave("{\"version\":\"1.16.2\"}");
    assertThatThrownBy(() -> boot(driver, "refused")).hasMessageContaining("1.16.2");
    nothingIsLeft(driver, "refused");
  }

  @Test
  void endsAreToldFromEachOther() throws Exception {
    FirecrackerVmm driver = driver();
    fake.behave("{\"reboot_ms\":50}");
    assertThat(boot(driver, "reboot").exit().get(10, TimeUnit.SECONDS).kind())
        .isEqualTo(VmExit.Kind.STOPPED);
    fake.behave("{}");
    Vm vm = boot(driver, "seccomp");
    fake.behave("{\"faults\":[{\"call\":\"PATCH /vm\",\"signal\":31}]}");
    assertThatThrownBy(vm::pause).isInstanceOf(SpaceException.class);
    VmExit exit = vm.exit().get(10, TimeUnit.SECONDS);
    assertThat(exit.kind()).isEqualTo(VmExit.Kind.VMM_DIED);
    assertThat(exit.detail()).contains("forbidden system call");
  }

  @Test
  void anOldOneAndAJailerOfAnotherReleaseAreNotTaken() {
    fake.behave("{\"version\":\"1.16.0\"}");
    assertCode(ErrorCode.PREREQUISITE_MISSING, this::driver);
    assertCode(
        ErrorCode.PREREQUISITE_MISSING,
        () ->
            FirecrackerVmm.open(
                new FirecrackerSettings(
                    "no-such-firecracker",
                    new Jail.None(),
                    dir,
                    dir,
                    FirecrackerSettings.CALL,
                    DiskRate.NONE,
                    Optional.empty()),
                new Processes(System.getenv())));
  }

  @Test
  void boundsOfDisksAreThoseOfThisHostAndNotOfTheSnapshot() throws Exception {
    MemoryImage image = frozen(driver());
    FirecrackerVmm bounded =
        driver(new Jail.None(), Duration.ofSeconds(20), new DiskRate(100, 1 << 20));
    Vm vm = bounded.restore(spec("bounded"), image);
    vms.add(vm);
    String log = Files.readString(dir.resolve("vms/bounded/fc/log"));
    int load = log.indexOf("\"/snapshot/load\"");
    assertThat(load).isPositive();
    assertThat(log.indexOf("PATCH request on \"/drives/vdb\"")).isGreaterThan(load);
    assertThat(log).doesNotContain("PATCH request on \"/vm\"");
  }

  @Test
  void aSaveThatFailedIsFollowedByAWholeOne() throws Exception {
    FirecrackerVmm driver = driver();
    MemoryImage image = frozen(driver);
    Vm vm = driver.restore(spec("torn"), image);
    vms.add(vm);
    Path into = Files.createDirectories(dir.resolve("torn"));
    fake.behave(
        "{\"faults\":[{\"call\":\"PUT /snapshot/create\",\"status\":400,\"message\":\"No space left"
            + " on device\"}]}");
    assertCode(
        ErrorCode.DISK_FULL,
        () -> vm.save(into.resolve("state"), new MemoryTarget.Changes(into.resolve("changes"))));
    fake.behave("{}");
    vm.resume();
    vm.pause();
    vm.save(into.resolve("state"), new MemoryTarget.Changes(into.resolve("changes")));
    String log = Files.readString(dir.resolve("vms/torn/fc/log"));
    assertThat(log).contains("snapshot/create");
    vm.kill();
    Vm again =
        driver.restore(
            spec("torn"),
            new MemoryImage(
                into.resolve("state"), image.memory(), Optional.of(into.resolve("changes"))));
    vms.add(again);
    again.resume();
    assertThat(again.exit()).isNotDone();
  }

  @Test
  void fiveHundredRoundsLeaveNothing() throws Exception {
    rounds(driver(), "open");
  }

  @Test
  void fiveHundredRoundsInJailsLeaveNothing() throws Exception {
    rounds(driver(jailer(), Duration.ofSeconds(20), DiskRate.NONE), "jailed");
  }

  private void rounds(FirecrackerVmm driver, String name) throws Exception {
    MemoryImage image = frozen(driver);
    round(driver, image, name + "-first");
    long files = count(Path.of("/proc/self/fd"));
    String mounts = Files.readString(Path.of("/proc/self/mounts"));
    long begin = System.nanoTime();
    try (ExecutorService pool = Executors.newFixedThreadPool(AT_ONCE)) {
      List<Future<Boolean>> all = new ArrayList<>();
      for (int i = 0; i < AT_ONCE; i++) {
        String mine = name + i;
        Callable<Boolean> some =
            () -> {
              for (int round = 0; round < ROUNDS / AT_ONCE; round++) {
                round(driver, image, mine);
              }
              return true;
            };
        all.add(pool.submit(some));
      }
      for (Future<Boolean> one : all) {
        assertThat(one.get()).isTrue();
      }
    }
    System.out.printf(
        "%d rounds (%s): %.1f ms each%n", ROUNDS, name, (System.nanoTime() - begin) / 1e6 / ROUNDS);
    assertThat(driver.running(dir.resolve("vms"))).isEmpty();
    assertThat(count(Path.of("/proc/self/fd"))).isLessThan(files + 20);
    assertThat(Files.readString(Path.of("/proc/self/mounts"))).isEqualTo(mounts);
    try (Stream<Path> left = Files.walk(dir.resolve("vms"))) {
      assertThat(left.filter(path -> !Files.isDirectory(path)))
          .allMatch(path -> path.endsWith("disk.img"));
    }
  }

  private void round(FirecrackerVmm driver, MemoryImage image, String name) throws IOException {
    Vm vm = driver.restore(spec(name), image);
    try {
      vm.resume();
      vm.dial().close();
    } finally {
      vm.kill();
    }
  }

  private static long count(Path directory) throws IOException {
    try (Stream<Path> all = Files.list(directory)) {
      return all.count();
    }
  }
}
