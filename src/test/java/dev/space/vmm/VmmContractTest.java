package dev.space.vmm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.type;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.guest.GuestConnector;
import dev.space.core.guest.GuestLink;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessSpec;
import dev.space.core.vm.MemoryImage;
import dev.space.core.vm.Vm;
import dev.space.core.vm.VmExit;
import dev.space.core.vm.VmSpec;
import dev.space.core.vm.Vmm;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What every driver does. A subclass says how one is made; the guest needs a shell.
public abstract class VmmContractTest {

  protected static final Duration UP = Duration.ofSeconds(60);

  /// Behaviour 28 asks for five seconds; the rest is what a busy machine adds.
  private static final long NOTICED_SECONDS = 5;

  private final List<Vm> vms = new ArrayList<>();
  private long generation = 1;

  protected abstract Vmm vmm();

  /// A driver as the next daemon would make it.
  protected abstract Vmm another();

  /// Makes a driver let go of a VM without ending it, as the death of its daemon does.
  protected abstract void forget(Vm vm);

  protected abstract GuestConnector connector();

  /// A shell's line that writes 1, 2, 3 and so on, one each 20 ms.
  protected String counting() {
    return "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done";
  }

  /// A VM's directory below [#root] with a fresh disk in it.
  protected abstract VmSpec newSpec(String name) throws IOException;

  protected abstract Path root();

  /// A frozen guest with its disk, made once for all tests.
  protected abstract Frozen frozen() throws IOException;

  /// @param disk copy of the disk as it was when the memory was saved
  protected record Frozen(MemoryImage image, Path disk) {}

  /// Boots a guest, greets it, freezes it.
  protected final Frozen freeze(Path into) throws IOException {
    VmSpec spec = newSpec("base");
    Vm vm = vmm().boot(spec);
    try {
      connector().greet(vm, UP).close();
      return new Frozen(save(vm, into, true), copyDisk(spec, into));
    } finally {
      vm.kill();
    }
  }

  private Path copyDisk(VmSpec spec, Path into) throws IOException {
    Path copy = into.resolve("disk");
    Files.copy(spec.disk(), copy);
    return copy;
  }

  private MemoryImage save(Vm vm, Path into, boolean full) {
    vm.pause();
    Path state = into.resolve("state");
    Path memory = into.resolve("memory");
    if (full) {
      vm.save(state, new Vm.MemoryTarget.Full(memory));
      return new MemoryImage(state, memory, Optional.empty());
    }
    Path changes = into.resolve("changes");
    vm.save(state, new Vm.MemoryTarget.Changes(changes));
    return new MemoryImage(state, memory, Optional.of(changes));
  }

  private Vm restore(String name) throws IOException {
    Frozen frozen = frozen();
    return restore(name, frozen.image(), frozen.disk());
  }

  private Vm restore(String name, MemoryImage image, Path disk) throws IOException {
    VmSpec spec = newSpec(name);
    Files.deleteIfExists(spec.disk());
    Files.copy(disk, spec.disk());
    Vm vm = vmm().restore(spec, image);
    vms.add(vm);
    return vm;
  }

  private GuestLink link(Vm vm) {
    return connector()
        .connect(
            vm,
            ++generation,
            new Guest.Adoption(
                false,
                vm.spec().id(),
                vm.spec().id(),
                Map.of(),
                Optional.empty(),
                Optional.empty()),
            UP);
  }

  private GuestLink wake(Vm vm) {
    vm.resume();
    return link(vm);
  }

  private static String output(GuestLink link, String id, String command) {
    link.start(ProcessSpec.of(id, List.of("sh", "-c", command)));
    var out = new ByteArrayOutputStream();
    link.output(
        id,
        0,
        event -> {
          if (event instanceof OutputEvent.Bytes bytes) {
            out.writeBytes(bytes.data());
          }
        });
    return out.toString(StandardCharsets.UTF_8);
  }

  @AfterEach
  void killAll() {
    vms.forEach(Vm::kill);
  }

  @Test
  void threeClonesOfOneImageLiveTheirOwnLives() throws Exception {
    for (String name : List.of("one", "two", "three")) {
      try (GuestLink link = wake(restore(name))) {
        assertThat(output(link, "w", "echo " + name + " > /tmp/n; cat /tmp/n"))
            .isEqualTo(name + "\n");
      }
    }
    assertThat(vmm().running(root())).hasSize(3);
  }

  @Test
  void aPausedGuestStandsStillAndGoesOn() throws Exception {
    Vm vm = restore("pause");
    try (GuestLink link = wake(vm)) {
      vm.pause();
      vm.pause();
      assertThat(vm.exit()).isNotDone();
      vm.resume();
      vm.resume();
      assertThat(output(link, "p", "echo on")).isEqualTo("on\n");
      assertThat(vm.stats().residentBytes()).isPositive();
    }
  }

  /// Behaviour 19, for the process: what ran goes on where it was, twice over.
  @Test
  void savedChangesBringBackARunningProcess() throws Exception {
    MemoryImage image = frozen().image();
    Path disk = frozen().disk();
    Vm vm = restore("run0");
    long last = 0;
    try (GuestLink link = wake(vm)) {
      link.start(ProcessSpec.of("count", List.of("sh", "-c", counting())));
      last = follow(link, 5);
    }
    for (int round = 1; round <= 2; round++) {
      Path into = Files.createDirectories(root().resolveSibling("saved" + round));
      MemoryImage saved = save(vm, into, false);
      image = new MemoryImage(saved.state(), image.memory(), saved.changes());
      disk = into.resolve("disk");
      Files.copy(vm.spec().disk(), disk);
      vm.kill();
      vm = restore("run" + round, image, disk);
      try (GuestLink link = wake(vm)) {
        long next = follow(link, last + 5);
        assertThat(next).isGreaterThanOrEqualTo(last + 5);
        last = next;
      }
    }
    Path whole = root().resolveSibling("whole-memory");
    vmm().materialise(image, whole);
    Vm copy = restore("whole", new MemoryImage(image.state(), whole, Optional.empty()), disk);
    try (GuestLink link = wake(copy)) {
      assertThat(follow(link, last)).isGreaterThanOrEqualTo(last);
    }
  }

  /// Reads the counter's output from its start until it has counted so far; every number follows
  /// the one before.
  private static long follow(GuestLink link, long until) {
    var text = new StringBuilder();
    class Enough extends RuntimeException {}
    try {
      link.output(
          "count",
          0,
          event -> {
            if (event instanceof OutputEvent.Bytes bytes) {
              text.append(new String(bytes.data(), StandardCharsets.UTF_8));
              if (text.toString().lines().count() > until) {
                throw new Enough();
              }
            }
          });
    } catch (Enough _) {
      // Far enough.
    }
    List<Long> numbers =
        text.substring(0, text.lastIndexOf("\n")).lines().map(Long::parseLong).toList();
    for (int i = 0; i < numbers.size(); i++) {
      assertThat(numbers.get(i)).isEqualTo(i + 1);
    }
    return numbers.getLast();
  }

  @Test
  void aFullSaveOfACloneStandsOnItsOwn() throws Exception {
    Vm vm = restore("full");
    try (GuestLink link = wake(vm)) {
      assertThat(output(link, "w", "echo kept > /dev/shm/k; cat /dev/shm/k")).isEqualTo("kept\n");
    }
    Path into = Files.createDirectories(root().resolveSibling("full-save"));
    MemoryImage image = save(vm, into, true);
    Path disk = copyDisk(vm.spec(), into);
    vm.kill();
    try (GuestLink link = wake(restore("full2", image, disk))) {
      assertThat(output(link, "r", "cat /dev/shm/k")).isEqualTo("kept\n");
    }
  }

  @Test
  void aSavedGuestRunsOnWhenItIsNotEnded() throws Exception {
    Vm vm = restore("rollback");
    try (GuestLink link = wake(vm)) {
      assertThat(output(link, "k", "echo kept > /dev/shm/k; cat /dev/shm/k")).isEqualTo("kept\n");
    }
    save(vm, Files.createDirectories(root().resolveSibling("rolled")), false);
    try (GuestLink link = wake(vm)) {
      assertThat(output(link, "r", "cat /dev/shm/k; echo on > /f; sync; cat /f"))
          .isEqualTo("kept\non\n");
    }
  }

  @Test
  void killEndsItAndIsToldFromEveryOtherEnd() throws Exception {
    Vm vm = restore("kill");
    vm.resume();
    vm.kill();
    vm.kill();
    assertThat(vm.exit().join().kind()).isEqualTo(VmExit.Kind.KILLED);
    assertThat(vmm().running(root())).doesNotContainValue(vm.identity());
  }

  /// Behaviour 26, for the driver.
  @Test
  void theNextDaemonAdoptsWhatRuns() throws Exception {
    Vm vm = restore("adopt");
    try (GuestLink link = wake(vm)) {
      assertThat(output(link, "a", "echo here > /dev/shm/a; cat /dev/shm/a")).isEqualTo("here\n");
    }
    forget(vm);
    assertThat(another().running(root())).containsValue(vm.identity());
    Vm adopted = another().adopt(vm.spec(), vm.identity(), UP).orElseThrow();
    vms.add(adopted);
    vms.remove(vm);
    try (GuestLink link = link(adopted)) {
      assertThat(output(link, "b", "cat /dev/shm/a")).isEqualTo("here\n");
    }
    adopted.kill();
    assertThat(adopted.exit().get(10, TimeUnit.SECONDS).kind()).isEqualTo(VmExit.Kind.KILLED);
    assertThat(another().adopt(vm.spec(), vm.identity(), UP)).isEmpty();
  }

  /// Behaviour 28.
  @Test
  void aPanicIsNoticedWithItsConsole() throws Exception {
    Vm vm = restore("panic");
    try (GuestLink link = wake(vm)) {
      link.start(ProcessSpec.of("c", List.of("sh", "-c", "echo c > /proc/sysrq-trigger")));
    } catch (SpaceException e) {
      assertThat(e.code()).isIn(ErrorCode.SANDBOX_DIED, ErrorCode.GUEST_UNREACHABLE);
    }
    VmExit exit = vm.exit().get(NOTICED_SECONDS, TimeUnit.SECONDS);
    assertThat(exit.kind()).isEqualTo(VmExit.Kind.PANICKED);
    assertThat(exit.detail()).contains("Kernel panic");
  }

  /// Behaviours 4 and 28: the stream ends with an error and the cause.
  @Test
  void aPowerOffIsNoticedAndItsStreamsSaySo() throws Exception {
    Vm vm = restore("off");
    GuestLink link = wake(vm);
    link.start(ProcessSpec.of("s", List.of("sleep", "600")));
    var reading = new CountDownLatch(1);
    Thread.ofVirtual()
        .start(
            () -> {
              try {
                if (reading.await(30, TimeUnit.SECONDS)) {
                  link.shutdown(Duration.ofMillis(100));
                }
              } catch (SpaceException | InterruptedException _) {
                // The guest may be gone before it answered.
              }
            });
    assertThatThrownBy(
            () ->
                link.output(
                    "s",
                    0,
                    event -> {
                      reading.countDown();
                      if (event instanceof OutputEvent.Exited) {
                        throw new IllegalStateException("killed before the end");
                      }
                    }))
        .isInstanceOfAny(SpaceException.class, IllegalStateException.class);
    assertThat(vm.exit().get(NOTICED_SECONDS, TimeUnit.SECONDS).kind())
        .isEqualTo(VmExit.Kind.STOPPED);
    assertThatThrownBy(link::processes)
        .asInstanceOf(type(SpaceException.class))
        .extracting(SpaceException::code)
        .isEqualTo(ErrorCode.SANDBOX_DIED);
  }

  @Test
  void anAgentThatNeverAnswersIsGivenUpAtTheDeadline() throws Exception {
    Vm vm = restore("deaf");
    assertThatThrownBy(() -> connector().greet(vm, Duration.ofMillis(500)))
        .asInstanceOf(type(SpaceException.class))
        .extracting(SpaceException::code)
        .isEqualTo(ErrorCode.GUEST_UNREACHABLE);
  }
}
