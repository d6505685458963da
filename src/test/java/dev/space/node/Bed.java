package dev.space.node;

import dev.space.core.guest.Guest;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessExit;
import dev.space.core.guest.ProcessSpec;
import dev.space.core.node.LaunchSpec;
import dev.space.core.node.NodeRuntime.Progress;
import dev.space.core.template.Resources;
import dev.space.core.template.Template;
import dev.space.core.vm.VmExit;
import dev.space.vmm.simulated.SimulatedDisks;
import dev.space.vmm.simulated.SimulatedHost;
import dev.space.vmm.simulated.SimulatedImages;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.awaitility.Awaitility;

/// A simulated host, a data directory and one node after another on them.
final class Bed {

  static final String TEMPLATE = "sha256:" + "ab".repeat(32);
  static final Resources SHAPE = new Resources(1, 128, 64);

  record Ended(String sandboxId, VmExit exit) {}

  /// What a command wrote and how it ended.
  record Ran(String out, String err, ProcessExit exit) {}

  private static final AtomicLong IDS = new AtomicLong();

  final Path dir;
  final SimulatedHost host;
  final SimulatedImages images = new SimulatedImages();
  final Queue<Ended> ended = new ConcurrentLinkedQueue<>();
  int vmsMax = 10_000;
  long memoryBytes = 1L << 50;
  long diskReserve = 0;

  Bed(Path dir) {
    this(dir, 42);
  }

  Bed(Path dir, long seed) {
    this.dir = dir;
    this.host = new SimulatedHost(InstantSource.system(), new Random(seed));
    images.add(TEMPLATE, Template.Defaults.NONE);
  }

  Node node() {
    return node(FailPoints.NONE);
  }

  Node node(FailPoints failPoints) {
    NodeSettings settings =
        new NodeSettings(
            "test",
            dir,
            vmsMax,
            memoryBytes,
            1.0,
            diskReserve,
            Duration.ofSeconds(10),
            Duration.ofSeconds(10),
            Duration.ofMillis(500),
            Duration.ofSeconds(10),
            1);
    Node node =
        new Node(settings, host.vmm(), host.connector(), images, new SimulatedDisks(), failPoints);
    node.onExit((id, exit) -> ended.add(new Ended(id, exit)));
    return node;
  }

  /// Waits until nothing changes any more: what a dead daemon had begun is over.
  void settle() {
    Set<String> before = tree("");
    // The dead daemon's threads end by an exception that nobody catches, and are meant to.
    Awaitility.await()
        .dontCatchUncaughtExceptions()
        .pollInterval(Duration.ofMillis(20))
        .until(
            new java.util.concurrent.Callable<Boolean>() {
              private Set<String> last = before;
              private int same;

              @Override
              public Boolean call() {
                Set<String> now = tree("");
                now.addAll(processes());
                same = now.equals(last) ? same + 1 : 0;
                last = now;
                return same >= 3;
              }
            });
  }

  static String id() {
    return "s" + "%019d".formatted(IDS.incrementAndGet());
  }

  static LaunchSpec spec(String id) {
    return spec(id, new LaunchSpec.Source.Template(TEMPLATE));
  }

  static LaunchSpec spec(String id, LaunchSpec.Source source) {
    return new LaunchSpec(
        id,
        source,
        SHAPE,
        new Guest.Adoption(
            true, id, id, Map.of("SANDBOX", id), Optional.empty(), Optional.empty()));
  }

  static String create(Node node) {
    String id = id();
    node.create(spec(id), Progress.NONE);
    return id;
  }

  static String sh(Node node, String id, String script) {
    return sh(node.guest(id), script);
  }

  static String sh(Guest guest, String script) {
    return run(guest, List.of("sh", "-c", script)).out();
  }

  static Ran run(Guest guest, List<String> argv) {
    String id = "p" + IDS.incrementAndGet();
    guest.start(ProcessSpec.of(id, argv));
    return output(guest, id);
  }

  static Ran output(Guest guest, String id) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    ProcessExit[] exit = new ProcessExit[1];
    guest.output(
        id,
        0,
        event -> {
          switch (event) {
            case OutputEvent.Bytes bytes ->
                (bytes.stream() == OutputEvent.Stream.STDERR ? err : out).writeBytes(bytes.data());
            case OutputEvent.Exited ended -> exit[0] = ended.exit();
            case OutputEvent.Started _, OutputEvent.Gap _ -> {}
          }
        });
    guest.release(id);
    return new Ran(
        out.toString(StandardCharsets.UTF_8), err.toString(StandardCharsets.UTF_8), exit[0]);
  }

  Path vm(String id) {
    return dir.resolve("vms").resolve(id);
  }

  Set<String> vmDirectories() {
    return names(dir.resolve("vms"));
  }

  Set<String> processes() {
    return host.alive().stream()
        .map(spec -> spec.id())
        .collect(Collectors.toCollection(TreeSet::new));
  }

  /// Every file and directory below a part of the data directory, relative to it.
  Set<String> tree(String part) {
    Path root = dir.resolve(part);
    try (Stream<Path> all = Files.walk(root)) {
      return all.map(path -> root.relativize(path).toString())
          .collect(Collectors.toCollection(TreeSet::new));
    } catch (java.io.UncheckedIOException e) {
      // It changed while it was read.
      return new TreeSet<>(Set.of(String.valueOf(System.nanoTime())));
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  static Set<String> names(Path directory) {
    try (Stream<Path> all = Files.list(directory)) {
      return all.map(path -> path.getFileName().toString())
          .collect(Collectors.toCollection(TreeSet::new));
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }
}
