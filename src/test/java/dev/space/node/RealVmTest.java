package dev.space.node;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.core.guest.Guest;
import dev.space.core.node.LaunchSpec;
import dev.space.core.node.NodeRuntime.Progress;
import dev.space.core.node.NodeRuntime.Recovered;
import dev.space.core.template.Resources;
import dev.space.core.vm.Vmm;
import dev.space.guest.GrpcGuestConnector;
import dev.space.host.Processes;
import dev.space.image.BootFiles;
import dev.space.image.TestImages;
import dev.space.vmm.qemu.QemuSettings;
import dev.space.vmm.qemu.QemuVmm;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.InstantSource;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Few tests of many steps, because each base snapshot costs a boot.
@Tag("vm")
class RealVmTest {

  private static final Resources SHAPE = new Resources(1, 256, 256);

  private Path dir;
  private Vmm vmm;

  @BeforeEach
  void setUp() throws Exception {
    dir = Files.createTempDirectory("space-node-");
    vmm = vmm(dir);
  }

  private static Vmm vmm(Path dir) throws Exception {
    BootFiles boot = TestImages.boot();
    return QemuVmm.open(
        new QemuSettings(
            "qemu-system-x86_64",
            boot.kernel(),
            boot.initramfs(),
            QemuSettings.Acceleration.TCG,
            dir,
            Optional.empty()),
        new Processes(System.getenv()));
  }

  @AfterEach
  void tearDown() {
    node(dir, vmm).recover(Set.of());
    Folders.remove(dir);
  }

  private static Node node(Path dir, Vmm vmm) {
    NodeSettings settings = NodeSettings.of("test", dir, 20, 16L << 30, 1, 0);
    return new Node(
        settings,
        vmm,
        new GrpcGuestConnector(InstantSource.system(), new SecureRandom()),
        TestImages.images(),
        new HostDisks(TestImages.disks()),
        FailPoints.NONE);
  }

  private static LaunchSpec spec(String id, LaunchSpec.Source source) {
    return new LaunchSpec(
        id,
        source,
        SHAPE,
        new Guest.Adoption(
            true, id, id, Map.of("SANDBOX", id), Optional.empty(), Optional.empty()));
  }

  @Test
  void realSandboxesLiveSleepAndFork() {
    LaunchSpec.Source template = new LaunchSpec.Source.Template(TestImages.digest());
    Node node = node(dir, vmm);
    LaunchSpec a = spec("aaaaaaaaaaaaaaaaaaaa", template);
    timed("first create", () -> node.create(a, Progress.NONE));
    timed("exec", () -> assertThat(sh(node, a, "echo $SANDBOX")).isEqualTo(a.sandboxId() + "\n"));
    timed("exec", () -> sh(node, a, "echo kept > /root/f; (sleep 1000 &) ; echo"));

    LaunchSpec b = spec("bbbbbbbbbbbbbbbbbbbb", template);
    timed("create", () -> node.create(b, Progress.NONE));
    timed("first exec", () -> sh(node, b, "echo hello"));
    timed("exec", () -> sh(node, b, "echo hello"));
    timed("pause", () -> node.pause(b.sandboxId()));
    timed("resume", () -> node.resume(b.sandboxId(), b));
    timed("exec after resume", () -> sh(node, b, "echo hello"));
    node.delete(b.sandboxId());

    for (int round = 0; round < 2; round++) {
      timed("suspend", () -> node.suspend(a.sandboxId()));
      assertThat(vmm.running(dir.resolve("vms"))).isEmpty();
      timed("wake", () -> node.wake(a.sandboxId(), a));
      timed("exec after wake", () -> sh(node, a, "echo hello"));
      assertThat(sh(node, a, "cat /root/f; echo more >> /root/f; sync")).startsWith("kept\n");
    }
    timed("snapshot", () -> node.snapshot(a.sandboxId(), "snap"));
    LaunchSpec fork = spec("cccccccccccccccccccc", new LaunchSpec.Source.Snapshot("snap"));
    timed("create from snapshot", () -> node.create(fork, Progress.NONE));
    assertThat(sh(node, fork, "cat /root/f; echo $SANDBOX"))
        .isEqualTo("kept\nmore\nmore\n" + fork.sandboxId() + "\n");
    assertThat(sh(node, fork, "cat /proc/sys/kernel/random/uuid /etc/machine-id"))
        .isNotEqualTo(sh(node, a, "cat /proc/sys/kernel/random/uuid /etc/machine-id"));

    node.target(TestImages.digest(), SHAPE, 1);
    org.awaitility.Awaitility.await()
        .atMost(java.time.Duration.ofSeconds(60))
        .until(() -> node.capacity().warm() == 1);
    LaunchSpec warm = spec("dddddddddddddddddddd", template);
    timed("warm create", () -> node.create(warm, Progress.NONE));
    timed("first exec", () -> assertThat(sh(node, warm, "hostname")).contains("dddd"));
    timed("exec", () -> sh(node, warm, "echo hello"));

    for (LaunchSpec one : Set.of(a, fork, warm)) {
      node.delete(one.sandboxId());
    }
    node.target(TestImages.digest(), SHAPE, 0);
    org.awaitility.Awaitility.await().until(() -> vmm.running(dir.resolve("vms")).isEmpty());
    org.awaitility.Awaitility.await().until(() -> Bed.names(dir.resolve("vms")).isEmpty());
    assertThat(Bed.names(dir.resolve("vms"))).isEmpty();
  }

  /// A daemon of its own process, so that its end is one.
  static final class Daemon {
    public static void main(String[] args) throws Exception {
      Path dir = Path.of(args[0]);
      Node node = node(dir, vmm(dir));
      node.create(kept(), Progress.NONE);
      node.create(forgotten(), Progress.NONE);
      sh(node, kept(), "echo kept > /root/f");
      Runtime.getRuntime().halt(9);
    }
  }

  private static LaunchSpec kept() {
    return spec("kkkkkkkkkkkkkkkkkkkk", new LaunchSpec.Source.Template(TestImages.digest()));
  }

  private static LaunchSpec forgotten() {
    return spec("ffffffffffffffffffff", new LaunchSpec.Source.Template(TestImages.digest()));
  }

  @Test
  @DisplayName("behaviour 26: a daemon adopts the VMs of one that was killed and ends the others")
  void vmsSurviveTheDaemon() throws Exception {
    Process daemon =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"),
                Daemon.class.getName(),
                dir.toString())
            .inheritIO()
            .start();
    assertThat(daemon.waitFor()).isEqualTo(9);
    assertThat(vmm.running(dir.resolve("vms"))).hasSize(2);
    Node next = node(dir, vmm);
    Recovered[] found = new Recovered[1];
    timed("recover", () -> found[0] = next.recover(Set.of(kept())));
    assertThat(found[0].running()).containsExactly(kept().sandboxId());
    assertThat(sh(next, kept(), "cat /root/f")).isEqualTo("kept\n");
    assertThat(Bed.names(dir.resolve("vms"))).containsExactly(kept().sandboxId());
    next.delete(kept().sandboxId());
    assertThat(vmm.running(dir.resolve("vms"))).isEmpty();
    assertThat(Bed.names(dir.resolve("vms"))).isEmpty();
  }

  @Test
  @DisplayName("behaviour 26: a node that was closed leaves its VMs to the next in this process")
  void aClosedNodeLetsGo() throws Exception {
    Node first = node(dir, vmm);
    first.create(kept(), Progress.NONE);
    first.target(TestImages.digest(), SHAPE, 1);
    org.awaitility.Awaitility.await()
        .atMost(java.time.Duration.ofSeconds(60))
        .until(() -> first.capacity().warm() == 1);
    sh(first, kept(), "echo kept > /root/f");
    first.close();
    assertThat(vmm.running(dir.resolve("vms"))).hasSize(2);
    Node second = node(dir, vmm(dir));
    assertThat(second.recover(Set.of(kept())).running()).containsExactly(kept().sandboxId());
    assertThat(sh(second, kept(), "cat /root/f")).isEqualTo("kept\n");
    second.pause(kept().sandboxId());
    second.resume(kept().sandboxId(), kept());
    assertThat(vmm.running(dir.resolve("vms"))).hasSize(1);
    second.delete(kept().sandboxId());
    assertThat(Bed.names(dir.resolve("vms"))).isEmpty();
  }

  private static String sh(Node node, LaunchSpec spec, String script) {
    return Bed.sh(node, spec.sandboxId(), script);
  }

  private static void timed(String what, Runnable step) {
    long start = System.nanoTime();
    step.run();
    System.out.println(what + ": " + (System.nanoTime() - start) / 1_000_000 + " ms");
  }
}
