package dev.space.image;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.host.Command;
import dev.space.host.DiskFull;
import dev.space.host.Processes;
import dev.space.host.Processes.Finished;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.Stream;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.json.JsonMapper;

/// The guest kernel in `<data>/kernel/<release>/`: Debian's cloud kernel, whose package is
/// downloaded by apt (which checks its signature) and unpacked there, never installed on the host.
/// `current` names the release in use.
public final class KernelStore {

  private static final String META_PACKAGE = "linux-image-cloud-amd64";
  private static final Duration APT_MAX = Duration.ofMinutes(10);
  private static final Duration QUICK_MAX = Duration.ofMinutes(2);
  private static final String FETCH_AGAIN = "Run 'space setup', which fetches it again.";
  private static final String GIVE_ANOTHER =
      "Set boot.kernel to a bzImage that this user may read, or leave it out for Debian's.";

  private final Path root;
  private final Processes processes;
  private final JsonMapper json = JsonMapper.shared();

  /// @param data the service's data directory
  public KernelStore(Path data, Processes processes) {
    this.root = data.resolve("kernel");
    this.processes = processes;
  }

  /// What is recorded beside a kernel, to find damage.
  ///
  /// @param debPackage the package with its version
  record Manifest(String release, String debPackage, long size, String sha256) {}

  /// The kernel in use, checked to be as it was when it was unpacked; empty when there is none.
  ///
  /// @throws dev.space.core.error.SpaceException PREREQUISITE_MISSING when it is damaged, with the
  ///   file and the remedy
  public Optional<GuestKernel> installed() {
    Path current = root.resolve("current");
    try {
      if (!Files.exists(current)) {
        return Optional.empty();
      }
      Path directory = root.resolve(Files.readString(current).strip());
      Path manifest = directory.resolve("kernel.json");
      if (!Files.isDirectory(directory)) {
        return Optional.empty();
      }
      Manifest recorded = json.readValue(Files.readAllBytes(manifest), Manifest.class);
      Path image = directory.resolve("vmlinuz");
      verify(image, Optional.of(recorded), FETCH_AGAIN);
      return Optional.of(
          new GuestKernel(
              recorded.release(), image, directory.resolve("modules"), recorded.sha256()));
    } catch (IOException | JacksonException e) {
      throw Problem.of(
              ErrorCode.PREREQUISITE_MISSING, "the guest kernel in " + root + " is damaged")
          .because(e)
          .remedy(FETCH_AGAIN)
          .toException(e);
    }
  }

  /// A kernel that the operator brings.
  ///
  /// @param image a bzImage
  /// @param modules the directory of its modules, such as `/lib/modules/<release>`
  public GuestKernel of(Path image, Path modules) {
    try {
      verify(image, Optional.empty(), GIVE_ANOTHER);
      if (!Files.isDirectory(modules)) {
        throw Problem.of(
                ErrorCode.PREREQUISITE_MISSING,
                "there is no directory of kernel modules " + modules)
            .remedy("Give the directory with the modules of " + image + ".")
            .toException();
      }
      String release = BzImage.release(image);
      return new GuestKernel(release, image, modules, Digests.ofFile(image));
    } catch (IOException e) {
      throw Problem.of(ErrorCode.PREREQUISITE_MISSING, "the kernel " + image + " can't be read")
          .because(e)
          .remedy(GIVE_ANOTHER)
          .toException(e);
    }
  }

  /// Fetches the kernel that Debian's cloud kernel package stands for now, unless it is here
  /// already.
  ///
  /// @param progress told each step
  /// @throws dev.space.core.error.SpaceException PREREQUISITE_MISSING with what apt said
  public GuestKernel fetch(Consumer<String> progress) {
    try {
      Files.createDirectories(root);
      StagedFile.sweep(root);
      Path aside = StagedFile.asideOf(root.resolve("fetch"));
      try {
        Files.createDirectories(aside);
        return fetchInto(aside, progress);
      } finally {
        StagedFile.remove(aside);
      }
    } catch (IOException e) {
      throw Problem.of(DiskFull.codeOf(e), "the guest kernel could not be unpacked")
          .because(e)
          .remedy("Look at the free space of " + root + ".")
          .toException(e);
    }
  }

  private GuestKernel fetchInto(Path aside, Consumer<String> progress) throws IOException {
    Optional<String> name = concretePackage();
    boolean updated = false;
    if (name.isEmpty()) {
      progress.accept("updating apt's package lists");
      update();
      updated = true;
      name = concretePackage();
    }
    String debPackage = name.orElseThrow(() -> noPackage("apt knows no " + META_PACKAGE));
    progress.accept("downloading " + debPackage);
    Finished download = download(debPackage, aside);
    if (!download.ok() && !updated) {
      progress.accept("updating apt's package lists");
      update();
      debPackage = concretePackage().orElse(debPackage);
      progress.accept("downloading " + debPackage);
      download = download(debPackage, aside);
    }
    if (!download.ok()) {
      throw noPackage(download.said());
    }
    Path deb = only(aside, ".deb");
    progress.accept("unpacking " + deb.getFileName());
    Path tree = aside.resolve("tree");
    Finished unpack =
        processes.run(
            Command.of(QUICK_MAX, "dpkg-deb", "-x", deb.toString(), tree.toString()), _ -> {});
    if (!unpack.ok()) {
      throw new IOException(unpack.said());
    }
    return place(aside, tree, deb);
  }

  private GuestKernel place(Path aside, Path tree, Path deb) throws IOException {
    Path image = only(tree.resolve("boot"), "vmlinuz-");
    String release = image.getFileName().toString().substring("vmlinuz-".length());
    Path modules = tree.resolve("lib/modules").resolve(release);
    if (!Files.isDirectory(modules)) {
      modules = tree.resolve("usr/lib/modules").resolve(release);
    }
    Path ready = aside.resolve("ready");
    Files.createDirectories(ready);
    Files.move(image, ready.resolve("vmlinuz"));
    Files.move(modules, ready.resolve("modules"));
    Path placed = ready.resolve("vmlinuz");
    verify(placed, Optional.empty(), FETCH_AGAIN);
    Manifest manifest =
        new Manifest(
            release, deb.getFileName().toString(), Files.size(placed), Digests.ofFile(placed));
    Files.write(ready.resolve("kernel.json"), json.writeValueAsBytes(manifest));
    Path target = root.resolve(release);
    if (Files.exists(target)) {
      // A running daemon may still read the old directory by its open files; the name is what
      // counts.
      Path old = StagedFile.asideOf(target);
      Files.move(target, old);
      StagedFile.remove(old);
    }
    StagedFile.place(ready, target);
    StagedFile.write(root.resolve("current"), file -> Files.writeString(file, release + "\n"));
    return installed().orElseThrow(() -> noPackage("it was removed while it was being unpacked"));
  }

  private Optional<String> concretePackage() {
    Finished depends =
        processes.run(Command.of(QUICK_MAX, "apt-cache", "depends", META_PACKAGE), _ -> {});
    return depends.tail().stream()
        .map(String::strip)
        .filter(line -> line.startsWith("Depends: linux-image-"))
        .map(line -> line.substring("Depends: ".length()))
        .findFirst();
  }

  private Finished download(String debPackage, Path into) {
    return processes.run(
        Command.of(APT_MAX, "apt-get", "-q", "download", debPackage).in(into), _ -> {});
  }

  private void update() {
    Finished update = processes.run(Command.of(APT_MAX, "apt-get", "-q", "update"), _ -> {});
    if (!update.ok()) {
      SpaceException failure = noPackage(update.said());
      // Package lists are root's alone.
      throw "root".equals(System.getProperty("user.name"))
          ? failure
          : failure
              .problem()
              .remedy("Run as root: apt-get update\nthen, as this user: space setup")
              .toException(failure);
    }
  }

  private static SpaceException noPackage(String cause) {
    return Problem.of(ErrorCode.PREREQUISITE_MISSING, "the guest kernel could not be downloaded")
        .because(cause)
        .remedy(
            "See that 'apt-get update' works, then run 'space setup'; or give a kernel of your own"
                + " (boot.kernel and boot.modules in the configuration).")
        .toException();
  }

  private static Path only(Path directory, String part) throws IOException {
    try (Stream<Path> entries = Files.list(directory)) {
      List<Path> found =
          entries.filter(p -> p.getFileName().toString().contains(part)).sorted().toList();
      if (found.size() != 1) {
        throw new IOException(directory + " has " + found.size() + " entries like " + part);
      }
      return found.getFirst();
    }
  }

  private static void verify(Path image, Optional<Manifest> recorded, String remedy)
      throws IOException {
    Optional<String> fault = Optional.empty();
    if (!Files.isRegularFile(image)) {
      fault = Optional.of("there is no such file");
    } else if (!BzImage.isBzImage(image)) {
      fault = Optional.of("it is no bzImage: the boot header is missing");
    } else if (recorded.isPresent() && recorded.get().size() != Files.size(image)) {
      fault =
          Optional.of("it has " + Files.size(image) + " bytes instead of " + recorded.get().size());
    } else if (recorded.isPresent() && !recorded.get().sha256().equals(Digests.ofFile(image))) {
      fault = Optional.of("its SHA-256 is not the recorded one");
    }
    if (fault.isPresent()) {
      throw Problem.of(ErrorCode.PREREQUISITE_MISSING, "the kernel file " + image + " is damaged")
          .because(fault.get())
          .remedy(remedy)
          .toException();
    }
  }
}
