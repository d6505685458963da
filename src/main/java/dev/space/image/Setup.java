package dev.space.image;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.template.TemplateBuilder.BuildLog;
import dev.space.core.template.TemplateBuilder.Built;
import dev.space.core.template.TemplateBuilder.Staged;
import dev.space.core.template.TemplateRef;
import dev.space.host.Command;
import dev.space.host.DiskFull;
import dev.space.host.Prerequisite;
import dev.space.host.Processes;
import dev.space.host.Processes.Finished;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// Prepares a machine: Debian packages, guest kernel, initramfs, base template. Each part is made
/// only when it isn't there, aside and renamed, so that a setup can be repeated and goes on after
/// an interrupt. Two setups in one data directory wait for each other.
public final class Setup {

  private static final Duration INSTALL_MAX = Duration.ofMinutes(30);
  private static final int LOCK_SECONDS_MAX = 300;
  private static final Pattern DEB_PACKAGE = Pattern.compile("[a-z0-9][a-z0-9.+-]{1,100}");

  private final Parts parts;
  private final Processes processes;
  private final KernelStore kernels;
  private final BootImages boots;
  private final TemplateStore templates;
  private final ImageBuilder builder;

  /// What a setup is made from.
  ///
  /// @param data the service's data directory
  /// @param kernel a kernel of the operator's own; empty means Debian's cloud kernel
  /// @param agent the guest agent's binary
  /// @param baseRecipe the recipe directory of the base template, `templates/base`
  public record Parts(Path data, Optional<OwnKernel> kernel, Path agent, Path baseRecipe) {}

  /// @param image a bzImage
  /// @param modules the directory of its modules
  public record OwnKernel(Path image, Path modules) {}

  public Setup(Parts parts, Processes processes, TemplateStore templates, ImageBuilder builder) {
    this.parts = parts;
    this.processes = processes;
    this.kernels = new KernelStore(parts.data(), processes);
    this.boots = new BootImages(parts.data());
    this.templates = templates;
    this.builder = builder;
  }

  /// What a prepared machine has.
  ///
  /// @param base the base template as it was built
  public record Ready(BootFiles boot, Built base) {}

  /// Installs the Debian packages that are missing.
  ///
  /// @param found what [dev.space.host.Prerequisites] found
  /// @throws SpaceException PREREQUISITE_MISSING with the one command to run, when this isn't root
  ///   or apt fails
  public void install(List<Prerequisite> found, BuildLog log) {
    List<String> missing = Prerequisite.missingPackages(found);
    boolean root = "root".equals(System.getProperty("user.name"));
    if (!root && !missing.isEmpty()) {
      throw Prerequisite.problem(found).orElseThrow().toException();
    }
    if (!root || missing.isEmpty() && !Files.exists(installing())) {
      return;
    }
    try {
      Files.createDirectories(parts.data());
      if (Files.exists(installing())) {
        // Programs that are unpacked aren't missing, yet their packages may not be configured.
        String cutShort = Files.readString(installing());
        missing =
            Stream.concat(missing.stream(), cutShort.lines())
                .filter(DEB_PACKAGE.asMatchPredicate())
                .distinct()
                .toList();
      }
      Files.writeString(installing(), String.join("\n", missing));
      installPackages(missing, log);
      Files.delete(installing());
    } catch (IOException e) {
      throw unprepared(e);
    }
  }

  /// Names what is being installed; it stays when that is cut short.
  private Path installing() {
    return parts.data().resolve("installing");
  }

  private void installPackages(List<String> missing, BuildLog log) {
    log.step("installing " + String.join(" ", missing));
    List<String> install =
        new ArrayList<>(List.of("install", "-y", "--no-install-recommends", "--fix-broken"));
    install.addAll(missing);
    Finished updated = apt(log, List.of("update"));
    Finished installed = apt(log, install);
    if (!installed.ok()) {
      // An installation that was cut short, by whomever, is finished first.
      processes.run(environed("dpkg", "--configure", "-a"), log::line);
      installed = apt(log, install);
    }
    if (!installed.ok()) {
      throw notInstalled(
          missing, updated.ok() ? installed.said() : updated.said() + "\n" + installed.said());
    }
  }

  /// Another apt, such as that of an earlier setup which goes on by itself, is waited for.
  private Finished apt(BuildLog log, List<String> words) {
    List<String> argv =
        new ArrayList<>(List.of("apt-get", "-q", "-o", "DPkg::Lock::Timeout=" + LOCK_SECONDS_MAX));
    argv.addAll(words);
    return processes.run(environed(argv.toArray(String[]::new)), log::line);
  }

  private static Command environed(String... argv) {
    return Command.of(INSTALL_MAX, argv).env(Map.of("DEBIAN_FRONTEND", "noninteractive"));
  }

  private static SpaceException notInstalled(List<String> missing, String cause) {
    return Problem.of(
            ErrorCode.PREREQUISITE_MISSING,
            "these Debian packages are not installed: " + String.join(" ", missing))
        .because(cause)
        .remedy("Run as root: " + Prerequisite.installCommand(missing))
        .toException();
  }

  /// Makes what is missing of kernel, initramfs and base template.
  ///
  /// @throws SpaceException PREREQUISITE_MISSING, TEMPLATE_BUILD_FAILED, DISK_FULL, CANCELLED
  public Ready run(BuildLog log) {
    return locked(() -> new Ready(boots.prepare(kernel(log), parts.agent()), base(log)));
  }

  /// What is ready without making anything that takes long; empty when a setup is needed.
  ///
  /// @throws SpaceException PREREQUISITE_MISSING when the kernel is damaged
  public Optional<Ready> ready() {
    Optional<GuestKernel> kernel = presentKernel();
    Optional<Built> base = presentBase();
    if (kernel.isEmpty() || base.isEmpty() || !Files.isRegularFile(parts.agent())) {
      return Optional.empty();
    }
    return Optional.of(new Ready(boots.prepare(kernel.get(), parts.agent()), base.get()));
  }

  /// The uncompressed kernel, for monitors that boot no other; made unless it is there.
  ///
  /// @throws SpaceException PREREQUISITE_MISSING when there is no kernel, or it is damaged
  public Path vmlinux() {
    GuestKernel kernel =
        presentKernel()
            .orElseThrow(
                () ->
                    Problem.of(ErrorCode.PREREQUISITE_MISSING, "there is no guest kernel")
                        .remedy("Run 'space setup'.")
                        .toException());
    return boots.vmlinux(kernel);
  }

  /// The state of each part, for `doctor`.
  public List<Prerequisite> look() {
    String remedy = "Run 'space setup'.";
    List<Prerequisite> all = new ArrayList<>();
    Optional<GuestKernel> kernel = Optional.empty();
    try {
      kernel = presentKernel();
      all.add(
          kernel
              .map(k -> Prerequisite.ok("guest kernel", k.release()))
              .orElseGet(() -> Prerequisite.missing("guest kernel", "not fetched yet", remedy)));
    } catch (SpaceException e) {
      all.add(
          Prerequisite.missing(
              "guest kernel", e.problem().oneLine(), e.problem().remedy().orElse(remedy)));
    }
    boolean agent = Files.isRegularFile(parts.agent());
    all.add(
        agent
            ? Prerequisite.ok("guest agent", parts.agent().toString())
            : Prerequisite.missing("guest agent", "not built yet", "Run './space build'."));
    if (kernel.isPresent() && agent) {
      all.add(initramfs(kernel.get()));
    }
    all.add(
        presentBase()
            .map(b -> Prerequisite.ok("base template", b.digest()))
            .orElseGet(() -> Prerequisite.missing("base template", "not built yet", remedy)));
    return List.copyOf(all);
  }

  private Prerequisite initramfs(GuestKernel kernel) {
    try {
      return Prerequisite.ok(
          "initramfs", boots.prepare(kernel, parts.agent()).initramfs().toString());
    } catch (SpaceException e) {
      return Prerequisite.missing(
          "initramfs", e.problem().oneLine(), e.problem().remedy().orElse("Run 'space setup'."));
    }
  }

  private Optional<GuestKernel> presentKernel() {
    return parts.kernel().isPresent()
        ? parts.kernel().map(own -> kernels.of(own.image(), own.modules()))
        : kernels.installed();
  }

  private GuestKernel kernel(BuildLog log) {
    Optional<GuestKernel> present;
    try {
      present = presentKernel();
    } catch (SpaceException e) {
      if (parts.kernel().isPresent()) {
        throw e;
      }
      log.step(e.problem().oneLine() + "; fetching it again");
      present = Optional.empty();
    }
    return present.orElseGet(() -> kernels.fetch(log::step));
  }

  private Path baseRecord() {
    return templates.directory().resolve("base");
  }

  private Optional<Built> presentBase() {
    try {
      if (!Files.isRegularFile(baseRecord())) {
        return Optional.empty();
      }
      String[] words = Files.readString(baseRecord()).strip().split(" ");
      return words.length == 2
              && words[0].equals(ImageBuilder.fingerprint(parts.baseRecipe()))
              && TemplateRef.DIGEST.matcher(words[1]).matches()
          ? templates.built(words[1])
          : Optional.empty();
    } catch (IOException _) {
      return Optional.empty();
    }
  }

  private Built base(BuildLog log) throws IOException {
    Optional<Built> present = presentBase();
    if (present.isPresent()) {
      return present.get();
    }
    templates.sweep();
    log.step("building the base template");
    try (Staged staged = builder.stage(parts.baseRecipe())) {
      Built built =
          staged.build(
              ref -> {
                throw Problem.of(ErrorCode.RECIPE_INVALID, "the base template is built upon " + ref)
                    .remedy("Let it start from a Debian release.")
                    .toException();
              },
              log);
      String line = staged.fingerprint() + " " + built.digest() + "\n";
      StagedFile.write(baseRecord(), file -> Files.writeString(file, line));
      return built;
    }
  }

  private interface Work<T> {
    T run() throws IOException;
  }

  private <T> T locked(Work<T> work) {
    try {
      Files.createDirectories(parts.data());
      try (FileChannel channel =
          FileChannel.open(
              parts.data().resolve("setup.lock"),
              StandardOpenOption.CREATE,
              StandardOpenOption.WRITE)) {
        FileLock lock = channel.lock();
        try {
          return work.run();
        } finally {
          lock.release();
        }
      }
    } catch (IOException e) {
      throw unprepared(e);
    }
  }

  private SpaceException unprepared(IOException e) {
    return Problem.of(
            DiskFull.codeOf(e), "the data directory " + parts.data() + " can't be prepared")
        .because(e)
        .remedy("'space doctor' shows what is wrong with it.")
        .toException(e);
  }
}
