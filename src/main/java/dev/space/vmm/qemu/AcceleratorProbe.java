package dev.space.vmm.qemu;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.template.Resources;
import dev.space.core.vm.VmSpec;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Finds out whether KVM runs a guest here, by running one.
///
/// A `/dev/kvm` that opens proves nothing: on some hosts (nested ones above all) it makes a VM and
/// a vCPU and then hangs. The proof is a guest that gets as far as its own `/init`: that opens the
/// agent's port, or ends the guest because it finds no disk.
final class AcceleratorProbe {

  private static final Logger LOG = LoggerFactory.getLogger(AcceleratorProbe.class);

  private static final Path DEVICE = Path.of("/dev/kvm");
  private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");
  private static final Path RELEASE = Path.of("/proc/sys/kernel/osrelease");

  /// With KVM a guest is up within two seconds.
  private static final Duration DEADLINE = Duration.ofSeconds(10);

  private static final long DISK_BYTES = 1L << 20;

  private final QemuSettings settings;
  private final QemuVersion version;
  private final Launcher launcher;

  AcceleratorProbe(QemuSettings settings, QemuVersion version, Launcher launcher) {
    this.settings = settings;
    this.version = version;
    this.launcher = launcher;
  }

  /// Whether guests are to be run with KVM.
  boolean kvm() {
    return switch (settings.acceleration()) {
      case TCG -> false;
      case AUTO -> works();
      case KVM -> {
        if (!works()) {
          throw Problem.of(ErrorCode.PREREQUISITE_MISSING, "KVM runs no guest on this host.")
              .because("a guest was started with it and did not get up")
              .remedy("Use acceleration auto or tcg, or a host with working KVM.")
              .toException();
        }
        yield true;
      }
    };
  }

  private boolean works() {
    if (!Files.isReadable(DEVICE) || !Files.isWritable(DEVICE)) {
      return false;
    }
    Path verdict = settings.cache().resolve("kvm-verdict");
    String key = key();
    Optional<Boolean> known = read(verdict, key);
    if (known.isPresent()) {
      return known.get();
    }
    boolean works = tried();
    write(verdict, key, works);
    LOG.info("KVM {} on this host", works ? "runs guests" : "opens but runs no guest");
    return works;
  }

  /// All that the verdict depends on.
  private String key() {
    try {
      return String.join(
          " ",
          Files.readString(BOOT_ID).strip(),
          Files.readString(RELEASE).strip(),
          version.full(),
          settings.kernel().getFileName().toString());
    } catch (IOException e) {
      return "";
    }
  }

  private static Optional<Boolean> read(Path verdict, String key) {
    try {
      List<String> lines = Files.readAllLines(verdict, StandardCharsets.UTF_8);
      return lines.size() == 2 && !key.isEmpty() && lines.getFirst().equals(key)
          ? Optional.of(lines.getLast().equals("works"))
          : Optional.empty();
    } catch (IOException _) {
      return Optional.empty();
    }
  }

  private static void write(Path verdict, String key, boolean works) {
    try {
      Files.createDirectories(verdict.toAbsolutePath().getParent());
      Files.writeString(verdict, key + "\n" + (works ? "works" : "fails") + "\n");
    } catch (IOException e) {
      LOG.warn("The verdict on KVM can't be kept", e);
    }
  }

  private boolean tried() {
    Path directory = null;
    try {
      // The default place is short enough for sockets, whatever the data directory is.
      directory = Files.createTempDirectory("space-kvm");
      Path root = blank(directory.resolve("root.img"));
      Path disk = blank(directory.resolve("disk.img"));
      VmSpec spec = new VmSpec("kvm-probe", directory, new Resources(1, 256, 64), root, disk);
      return runs(spec);
    } catch (IOException e) {
      LOG.warn("KVM can't be tried", e);
      return false;
    } finally {
      if (directory != null) {
        remove(directory);
      }
    }
  }

  private boolean runs(VmSpec spec) {
    CommandLine line = new CommandLine(settings.binary(), version, true, spec, Optional.empty());
    Events events = new Events();
    CompletableFuture<Void> alive = new CompletableFuture<>();
    events.onShutdown(_ -> alive.complete(null));
    events.portOpened().thenAccept(_ -> alive.complete(null));
    Launcher.Started started;
    try {
      started =
          launcher.start(
              spec.directory(),
              line.boot(settings.kernel(), settings.initramfs()),
              Optional.empty(),
              Optional.empty(),
              events::take);
    } catch (SpaceException e) {
      LOG.info("QEMU can't use KVM: {}", e.getMessage());
      return false;
    }
    try {
      started.qmp().closed().thenRun(() -> alive.completeExceptionally(new IOException("ended")));
      alive.get(DEADLINE.toMillis(), TimeUnit.MILLISECONDS);
      return true;
    } catch (TimeoutException | ExecutionException _) {
      return false;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw Problem.of(ErrorCode.CANCELLED, "The trial of KVM was given up.").toException(e);
    } finally {
      started.process().kill();
      started.process().awaitGone(DEADLINE);
      started.qmp().close();
    }
  }

  private static Path blank(Path file) throws IOException {
    try (RandomAccessFile out = new RandomAccessFile(file.toFile(), "rw")) {
      out.setLength(DISK_BYTES);
    }
    return file;
  }

  private static void remove(Path directory) {
    try (Stream<Path> files = Files.walk(directory)) {
      files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
    } catch (IOException e) {
      LOG.warn("'{}' can't be removed", directory, e);
    }
  }
}
