package dev.space.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.guest.ProcessSpec;
import dev.space.core.node.LaunchSpec;
import dev.space.core.node.NodeRuntime.Progress;
import dev.space.core.template.Resources;
import dev.space.core.template.Template;
import dev.space.core.vm.VmExit;
import dev.space.vmm.simulated.SimulatedHost;
import dev.space.vmm.simulated.SimulatedHost.Step;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LifecycleTest {

  @TempDir Path dir;
  Bed bed;
  Node node;

  @BeforeEach
  void setUp() {
    bed = new Bed(dir);
    node = bed.node();
  }

  @Test
  @DisplayName("behaviour 19: files and processes are as they were after five suspends and wakes")
  void suspendsAndWakesKeepFilesAndProcesses() {
    String id = Bed.create(node);
    Bed.sh(node, id, "echo kept > /root/f");
    node.guest(id)
        .start(
            new ProcessSpec(
                "cat",
                List.of("cat"),
                Map.of(),
                Optional.empty(),
                Optional.empty(),
                true,
                Optional.empty(),
                Optional.empty(),
                "",
                true));
    for (int round = 0; round < 5; round++) {
      node.guest(id)
          .writeStdin(
              "cat", 2L * round, "x\n".getBytes(java.nio.charset.StandardCharsets.UTF_8), false);
      Bed.sh(node, id, "echo " + round + " >> /root/f");
      node.suspend(id);
      assertThat(bed.processes()).isEmpty();
      assertThat(node.capacity().vms()).isZero();
      node.wake(id, Bed.spec(id));
      assertThat(bed.vm(id).resolve("saved")).doesNotExist();
    }
    assertThat(Bed.sh(node, id, "cat /root/f")).isEqualTo("kept\n0\n1\n2\n3\n4\n");
    node.guest(id).writeStdin("cat", 10, new byte[0], true);
    assertThat(Bed.output(node.guest(id), "cat").out()).isEqualTo("x\nx\nx\nx\nx\n");
  }

  @Test
  void pauseStopsTheGuestAndResumeSetsItsClock() {
    String id = Bed.create(node);
    node.pause(id);
    node.pause(id);
    assertCode(() -> node.guest(id), ErrorCode.ILLEGAL_STATE);
    node.resume(id, Bed.spec(id));
    long clock = Long.parseLong(Bed.sh(node, id, "date").strip());
    assertThat(clock)
        .isCloseTo(System.currentTimeMillis(), org.assertj.core.data.Offset.offset(1000L));
  }

  @Test
  void aPausedSandboxCanBeSuspendedAndSnapshotted() {
    String id = Bed.create(node);
    Bed.sh(node, id, "echo a > /root/f");
    node.pause(id);
    node.snapshot(id, "snap");
    assertCode(() -> node.guest(id), ErrorCode.ILLEGAL_STATE);
    node.suspend(id);
    node.wake(id, Bed.spec(id));
    assertThat(Bed.sh(node, id, "cat /root/f")).isEqualTo("a\n");
  }

  @Test
  @DisplayName("behaviour 22: a failed suspend rolls back to running")
  void aFailedSuspendRollsBack() {
    String id = Bed.create(node);
    Bed.sh(node, id, "echo a > /root/f");
    bed.host.inject(failing(Step.SAVE));
    assertCode(() -> node.suspend(id), ErrorCode.VMM_FAILED);
    bed.host.inject(SimulatedHost.Fault.NONE);
    assertThat(Bed.sh(node, id, "cat /root/f")).isEqualTo("a\n");
    assertThat(bed.vm(id).resolve("saved.partial")).doesNotExist();
    node.suspend(id);
  }

  @Test
  @DisplayName("behaviour 22: a failed wake leaves the saved state intact and can be tried again")
  void aFailedWakeCanBeTriedAgain() {
    for (Step step : List.of(Step.RESTORE, Step.RESUME, Step.CONNECT, Step.ADOPT)) {
      String id = Bed.create(node);
      Bed.sh(node, id, "echo a > /root/f");
      node.suspend(id);
      bed.host.inject(failing(step));
      assertCode(() -> node.wake(id, Bed.spec(id)), ErrorCode.VMM_FAILED);
      assertThat(bed.processes()).isEmpty();
      bed.host.inject(SimulatedHost.Fault.NONE);
      node.wake(id, Bed.spec(id));
      assertThat(Bed.sh(node, id, "cat /root/f")).isEqualTo("a\n");
      node.delete(id);
    }
  }

  @Test
  void aTornSaveIsNeverUsed() throws IOException {
    for (String file : List.of("state", "changes", "manifest.json")) {
      String id = Bed.create(node);
      node.suspend(id);
      Path torn = bed.vm(id).resolve("saved").resolve(file);
      byte[] bytes = Files.readAllBytes(torn);
      bytes[bytes.length / 2] ^= 1;
      Files.write(torn, bytes, StandardOpenOption.TRUNCATE_EXISTING);
      assertCode(() -> node.wake(id, Bed.spec(id)), ErrorCode.SNAPSHOT_DAMAGED);
      assertThat(bed.processes()).isEmpty();
      node.delete(id);
    }
  }

  @Test
  @DisplayName("behaviour 23: clones of one snapshot share no identity and no random numbers")
  void clonesAreDistinct() {
    String source = Bed.create(node);
    Bed.sh(node, source, "echo a > /root/f");
    assertThat(node.snapshot(source, "snap")).isPositive();
    Bed.sh(node, source, "echo b > /root/f");
    List<String> seen = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      String id = Bed.id();
      node.create(Bed.spec(id, new LaunchSpec.Source.Snapshot("snap")), Progress.NONE);
      assertThat(Bed.sh(node, id, "cat /root/f; hostname")).isEqualTo("a\n" + id + "\n");
      seen.add(Bed.sh(node, id, "machine-id"));
      seen.add(Bed.sh(node, id, "random"));
    }
    seen.add(Bed.sh(node, source, "random"));
    assertThat(seen).doesNotHaveDuplicates();
    assertThat(Bed.sh(node, source, "cat /root/f")).isEqualTo("b\n");
  }

  @Test
  void aSnapshotInUseIsNotDeleted() {
    String source = Bed.create(node);
    node.snapshot(source, "snap");
    node.delete(source);
    String id = Bed.id();
    node.create(Bed.spec(id, new LaunchSpec.Source.Snapshot("snap")), Progress.NONE);
    assertCode(() -> node.deleteSnapshot("snap"), ErrorCode.CONFLICT);
    node.suspend(id);
    assertCode(() -> node.deleteSnapshot("snap"), ErrorCode.CONFLICT);
    node.wake(id, Bed.spec(id));
    assertCode(() -> node.deleteTemplate(Bed.TEMPLATE), ErrorCode.CONFLICT);
    node.delete(id);
    assertCode(() -> node.deleteTemplate(Bed.TEMPLATE), ErrorCode.CONFLICT);
    node.deleteSnapshot("snap");
    node.deleteSnapshot("snap");
    assertCode(
        () ->
            node.create(Bed.spec(Bed.id(), new LaunchSpec.Source.Snapshot("snap")), Progress.NONE),
        ErrorCode.SNAPSHOT_NOT_FOUND);
    node.deleteTemplate(Bed.TEMPLATE);
    assertThat(bed.tree("base")).containsExactly("");
    assertThat(bed.tree("snapshots")).containsExactly("");
    assertCode(() -> Bed.create(node), ErrorCode.TEMPLATE_NOT_FOUND);
  }

  @Test
  void oneBaseSnapshotIsMadeHoweverManyWait() {
    AtomicInteger boots = new AtomicInteger();
    bed.host.inject(
        (step, spec) -> {
          if (step == Step.BOOT) {
            boots.incrementAndGet();
          }
        });
    List<CompletableFuture<Void>> creates = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      creates.add(
          CompletableFuture.runAsync(
              () -> Bed.create(node), task -> Thread.ofVirtual().start(task)));
    }
    creates.forEach(CompletableFuture::join);
    assertThat(boots).hasValue(1);
    assertThat(bed.processes()).hasSize(20);
  }

  @Test
  void theStartCommandRunsInEveryCopy() {
    bed.images.add(
        Bed.TEMPLATE,
        new Template.Defaults(
            Map.of("GREETING", "hi"),
            Optional.empty(),
            Optional.empty(),
            Optional.of(List.of("sh", "-c", "echo $GREETING > /tmp/started; listen 8000")),
            Optional.of("test -f /tmp/started"),
            Resources.DEFAULT,
            0));
    String id = Bed.create(node);
    assertThat(Bed.sh(node, id, "cat /tmp/started")).isEqualTo("hi\n");
    node.guest(id).connect(8000).close();
  }

  @Test
  @DisplayName(
      "behaviour 25: a create that dies half-way leaves nothing behind and names the cause")
  void aFailedCreateLeavesNothing() {
    Bed.create(node);
    Set<String> before = bed.vmDirectories();
    for (Step step : List.of(Step.RESTORE, Step.RESUME, Step.CONNECT, Step.ADOPT)) {
      bed.host.inject(failing(step));
      assertThatThrownBy(() -> Bed.create(node)).hasMessageContaining("fault at " + step);
      assertThat(bed.vmDirectories()).isEqualTo(before);
      assertThat(bed.processes()).isEqualTo(before);
      assertThat(node.capacity().vms()).isEqualTo(1);
    }
  }

  @Test
  @DisplayName("behaviour 24: a delete wins over whatever is in flight")
  void aDeleteWinsOverWhatIsInFlight() throws Exception {
    for (Step step : List.of(Step.RESTORE, Step.RESUME, Step.CONNECT, Step.ADOPT)) {
      String id = Bed.id();
      CountDownLatch reached = new CountDownLatch(1);
      CountDownLatch goOn = new CountDownLatch(1);
      bed.host.inject(
          (at, spec) -> {
            if (at == step && spec.id().equals(id)) {
              reached.countDown();
              awaitUninterruptibly(goOn);
            }
          });
      CompletableFuture<Void> create = aside(() -> node.create(Bed.spec(id), Progress.NONE));
      reached.await();
      CompletableFuture<Void> delete = aside(() -> node.delete(id));
      await().until(() -> step == Step.RESTORE || !bed.processes().contains(id));
      goOn.countDown();
      delete.get();
      assertThatThrownBy(create::get)
          .isInstanceOf(ExecutionException.class)
          .cause()
          .isInstanceOfSatisfying(
              SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.CANCELLED));
      assertThat(bed.vmDirectories()).isEmpty();
      assertThat(bed.processes()).isEmpty();
    }
    assertThat(bed.ended).isEmpty();
  }

  @Test
  @DisplayName("behaviour 24: deleting what sleeps never wakes it")
  void deletingWhatSleepsNeverWakesIt() {
    String paused = Bed.create(node);
    String suspended = Bed.create(node);
    node.pause(paused);
    node.suspend(suspended);
    bed.host.inject(failing(Step.RESUME, Step.RESTORE));
    node.delete(paused);
    node.delete(suspended);
    assertThat(bed.vmDirectories()).isEmpty();
    assertCode(() -> node.guest(paused), ErrorCode.SANDBOX_NOT_FOUND);
  }

  @Test
  @DisplayName("behaviour 28: panic, power-off and death of the VM are told with their cause")
  void guestDeathIsTold() {
    String crashed = Bed.create(node);
    String off = Bed.create(node);
    String killed = Bed.create(node);
    start(crashed, "crash");
    start(off, "poweroff");
    Guest guest = node.guest(killed);
    guest.start(ProcessSpec.of("s", List.of("sleep", "1000")));
    bed.host.killBehindTheBack(bed.vm(killed));
    await().atMost(Duration.ofSeconds(5)).until(() -> bed.ended.size() == 3);
    assertThat(bed.ended)
        .extracting(e -> e.sandboxId() + " " + e.exit().kind())
        .containsExactlyInAnyOrder(
            crashed + " " + VmExit.Kind.PANICKED,
            off + " " + VmExit.Kind.STOPPED,
            killed + " " + VmExit.Kind.VMM_DIED);
    assertCode(() -> guest.output("s", 1, event -> {}), ErrorCode.SANDBOX_DIED);
    assertCode(() -> node.guest(crashed), ErrorCode.ILLEGAL_STATE);
    assertThat(node.capacity().vms()).isZero();
    node.delete(crashed);
    assertThat(bed.vm(crashed)).doesNotExist();
  }

  @Test
  void aLostLinkComesBack() {
    String id = Bed.create(node);
    Guest before = node.guest(id);
    bed.host.breakLink(bed.vm(id));
    assertCode(() -> before.processes(), ErrorCode.GUEST_UNREACHABLE);
    assertThat(Bed.sh(node, id, "echo again")).isEqualTo("again\n");
    assertThat(bed.ended).isEmpty();
  }

  @Test
  @DisplayName("behaviour 28: a link that doesn't come back is the end of the guest")
  void aLinkThatStaysAwayIsTheEnd() {
    String id = Bed.create(node);
    bed.host.inject(failing(Step.CONNECT));
    bed.host.breakLink(bed.vm(id));
    await().atMost(Duration.ofSeconds(5)).until(() -> bed.ended.size() == 1);
    assertThat(bed.ended.element().exit().detail()).contains("link");
    assertThat(bed.processes()).isEmpty();
  }

  @Test
  void moreThanTheNodeHasIsRefusedWithTheFigures() {
    bed.vmsMax = 2;
    Node small = bed.node();
    String first = Bed.create(small);
    Bed.create(small);
    assertThatThrownBy(() -> Bed.create(small)).hasMessageContaining("2 of 2 VMs");
    small.suspend(first);
    Bed.create(small);
    assertCode(() -> small.wake(first, Bed.spec(first)), ErrorCode.CAPACITY);
    bed.vmsMax = 100;
    bed.memoryBytes = 128L << 20;
    Node poor = bed.node();
    Bed.create(poor);
    assertThatThrownBy(() -> Bed.create(poor)).hasMessageContaining("128 of 128 MiB");
  }

  @Test
  @DisplayName("behaviour 46: a full disk stops new creates with a clear error and harms no other")
  void aFullDiskStopsCreates() {
    String id = Bed.create(node);
    bed.diskReserve = Long.MAX_VALUE / 2;
    Node full = bed.node();
    assertCode(() -> Bed.create(full), ErrorCode.DISK_FULL);
    assertThat(bed.vmDirectories()).containsExactly(id);
    assertThat(Bed.sh(node, id, "echo fine")).isEqualTo("fine\n");
  }

  @Test
  void warmVmsAreClaimedOnceAndReplaced() {
    node.target(Bed.TEMPLATE, Bed.SHAPE, 3);
    await().until(() -> node.capacity().warm() == 3);
    AtomicInteger restores = new AtomicInteger();
    bed.host.inject(
        (step, spec) -> {
          if (step == Step.RESTORE && !spec.id().startsWith("warm")) {
            restores.incrementAndGet();
          }
        });
    List<String> machineIds = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      String id = Bed.create(node);
      assertThat(Bed.sh(node, id, "hostname; echo $SANDBOX")).isEqualTo(id + "\n" + id + "\n");
      machineIds.add(Bed.sh(node, id, "machine-id"));
      await().until(() -> node.capacity().warm() >= 1);
    }
    assertThat(restores).hasValue(0);
    assertThat(machineIds).doesNotHaveDuplicates();
    await().until(() -> node.capacity().warm() == 3);
    node.target(Bed.TEMPLATE, Bed.SHAPE, 0);
    assertThat(node.capacity().warm()).isZero();
    assertThat(bed.processes()).hasSize(3);
    assertThat(bed.vmDirectories()).hasSize(3);
  }

  @Test
  void warmVmsMakeRoomForSandboxes() {
    bed.vmsMax = 3;
    Node small = bed.node();
    small.target(Bed.TEMPLATE, Bed.SHAPE, 2);
    await().until(() -> small.capacity().warm() == 2);
    small.target(Bed.TEMPLATE, new Resources(2, 128, 64), 0);
    String id = Bed.id();
    LaunchSpec other =
        new LaunchSpec(
            id,
            new LaunchSpec.Source.Template(Bed.TEMPLATE),
            new Resources(2, 128, 64),
            Bed.spec(id).adoption());
    small.create(other, Progress.NONE);
    assertThat(Bed.sh(small, id, "echo in")).isEqualTo("in\n");
  }

  private void start(String id, String command) {
    node.guest(id).start(ProcessSpec.of("x", List.of(command)));
  }

  private static SimulatedHost.Fault failing(Step... steps) {
    return (step, spec) -> {
      if (List.of(steps).contains(step)) {
        throw Problem.of(ErrorCode.VMM_FAILED, "fault at " + step).toException();
      }
    };
  }

  private static CompletableFuture<Void> aside(Runnable task) {
    return CompletableFuture.runAsync(task, run -> Thread.ofVirtual().start(run));
  }

  private static void awaitUninterruptibly(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  static void assertCode(ThrowingCallable call, ErrorCode code) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.code()).as(e.toString()).isEqualTo(code));
  }
}
