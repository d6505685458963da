package dev.space.app;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.template.TemplateBuilder.BuildLog;
import dev.space.core.vm.Isolation;
import dev.space.guest.GrpcGuestConnector;
import dev.space.host.Cgroups;
import dev.space.host.Prerequisite;
import dev.space.host.Prerequisites;
import dev.space.host.Processes;
import dev.space.host.ProductionHost;
import dev.space.host.UserIds;
import dev.space.image.DiskImages;
import dev.space.image.ImageBuilder;
import dev.space.image.Setup;
import dev.space.image.TemplateStore;
import dev.space.node.HostDisks;
import dev.space.vmm.firecracker.FirecrackerSettings;
import dev.space.vmm.firecracker.FirecrackerSettings.Jail;
import dev.space.vmm.firecracker.FirecrackerVmm;
import dev.space.vmm.qemu.QemuSettings;
import dev.space.vmm.qemu.QemuSettings.Acceleration;
import dev.space.vmm.qemu.QemuVmm;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/// The machine the service runs on: what it lacks, how it is prepared, and the driver that it can
/// carry once it is.
public final class Machine {

  private final SpaceConfig config;
  private final Processes processes;
  private final Prerequisites prerequisites;
  private final TemplateStore templates;
  private final ImageBuilder builder;
  private final DiskImages disks;
  private final Setup setup;

  /// @param home the project's folder, with the recipe of the base template
  public Machine(SpaceConfig config, Path home, java.util.Map<String, String> environment) {
    this.config = config;
    this.processes = new Processes(environment);
    Path data = config.dataDir();
    this.prerequisites = new Prerequisites(processes, config.qemu().binary(), data);
    this.templates = new TemplateStore(data, processes);
    this.builder =
        new ImageBuilder(
            templates, data, processes, Optional.ofNullable(environment.get("SPACE_APT_MIRROR")));
    this.disks = new DiskImages(data, processes);
    var kernel =
        config
            .boot()
            .kernel()
            .flatMap(k -> config.boot().modules().map(m -> new Setup.OwnKernel(k, m)));
    this.setup =
        new Setup(
            new Setup.Parts(data, kernel, config.boot().agent(), home.resolve("templates/base")),
            processes,
            templates,
            builder);
  }

  /// Everything the service needs, with what was found and what to do about it.
  public List<Prerequisite> look() {
    List<Prerequisite> all = new ArrayList<>(prerequisites.look());
    all.addAll(setup.look());
    return List.copyOf(all);
  }

  /// The same, and what really isolates guests here: the first time a guest is started to find out.
  public List<Prerequisite> examine() {
    if (config.vmm() == SpaceConfig.VmmChoice.SIMULATED) {
      return List.of(
          Prerequisite.warn(
              "isolation",
              Isolation.SIMULATED.wire() + ": NO VM AT ALL, nothing is kept apart",
              "It is for tests of the control plane. Take 'vmm: simulated' out of the"
                  + " configuration to run anything real."));
    }
    List<Prerequisite> all = new ArrayList<>(look());
    all.add(isolation());
    return List.copyOf(all);
  }

  /// The points of docs/firecracker-host.md, and whether KVM runs a guest: one is started.
  public List<Prerequisite> examineForProduction() {
    var service =
        new ProductionHost.Service(
            "root".equals(System.getProperty("user.name")),
            config.firecracker().uidBase(),
            config.limits().vmsMax(),
            config.dataDir());
    List<Prerequisite> all = new ArrayList<>(new ProductionHost(service).look());
    all.add(kvmGuest());
    all.add(firecracker());
    return List.copyOf(all);
  }

  private Prerequisite firecracker() {
    String name = "firecracker and jailer";
    String remedy =
        "Install both, of one release of 1.16.1 or newer, and name them in the configuration.";
    try {
      return setup
          .ready()
          .map(this::firecracker)
          .map(
              vmm ->
                  vmm.jailed()
                      ? Prerequisite.ok(name, vmm.version() + ", each VM in a jail of its own")
                      : Prerequisite.missing(
                          name,
                          vmm.version() + " without its jailer",
                          "Set firecracker.jailer to the jailer."))
          .orElseGet(
              () ->
                  Prerequisite.warn(name, "not tried yet", "Run 'space setup', then this again."));
    } catch (SpaceException e) {
      return Prerequisite.missing(name, e.problem().oneLine(), e.problem().remedy().orElse(remedy));
    }
  }

  /// With QEMU, which tells it from a hang; Firecracker needs the same of KVM.
  private Prerequisite kvmGuest() {
    String name = "kvm guest";
    String hardware = "Use a machine whose KVM runs guests: bare metal.";
    try {
      return setup
          .ready()
          .map(
              ready ->
                  qemu(ready).isolation() == Isolation.QEMU_KVM
                      ? Prerequisite.ok(name, "a guest was run")
                      : Prerequisite.missing(name, "KVM runs no guest here", hardware))
          .orElseGet(
              () ->
                  Prerequisite.warn(
                      name, "no guest to try yet", "Run 'space setup', then this again."));
    } catch (SpaceException e) {
      return Prerequisite.missing(
          name, e.problem().oneLine(), e.problem().remedy().orElse(hardware));
    }
  }

  private Prerequisite isolation() {
    String name = "isolation";
    try {
      Optional<Setup.Ready> ready = setup.ready();
      if (ready.isEmpty()) {
        return Prerequisite.warn(
            name, "not known yet: there is no guest to try", "Run 'space setup', then this again.");
      }
      if (config.vmm() == SpaceConfig.VmmChoice.FIRECRACKER) {
        return jail(name, firecracker(ready.get()));
      }
      Isolation isolation = qemu(ready.get()).isolation();
      return switch (isolation) {
        case QEMU_TCG ->
            Prerequisite.warn(
                name,
                isolation.wire()
                    + ": GUESTS RUN IN SOFTWARE, about ten times slower than on the processor; a"
                    + " guest was tried with KVM or there is none",
                "For speed use a machine whose /dev/kvm runs guests (bare metal, or nested"
                    + " virtualisation switched on).");
        case QEMU_KVM, FIRECRACKER, SIMULATED ->
            Prerequisite.ok(name, isolation.wire() + ": a guest was run with it");
      };
    } catch (SpaceException e) {
      return Prerequisite.missing(
          name, e.problem().oneLine(), e.problem().remedy().orElse("Run 'space setup'."));
    }
  }

  private static Prerequisite jail(String name, FirecrackerVmm vmm) {
    String what = vmm.isolation().wire() + " " + vmm.version();
    return vmm.jailed()
        ? Prerequisite.ok(name, what + ", each VM in a jail of its own")
        : Prerequisite.warn(
            name,
            what
                + " WITHOUT ITS JAILER: a guest that breaks out of it has all that the service has",
            "For anything but development set firecracker.jailer to the jailer and run as root.");
  }

  /// Whether a daemon could start now. Quick.
  public boolean prepared() {
    try {
      return Prerequisite.missingPackages(prerequisites.look()).isEmpty()
          && setup.ready().isPresent();
    } catch (SpaceException _) {
      return false;
    }
  }

  /// Installs, fetches and builds what is missing; what is there is left alone.
  ///
  /// @throws SpaceException PREREQUISITE_MISSING with everything that can't be got from here
  public void setUp(BuildLog log) {
    setup.install(prerequisites.look(), log);
    // What packages don't bring would fail a long step, with a tool's words instead of a remedy.
    Prerequisite.problem(prerequisites.look())
        .ifPresent(
            problem -> {
              throw problem.toException();
            });
    Setup.Ready ready = setup.run(log);
    log.step(
        "ready: kernel " + ready.boot().release() + ", base template " + ready.base().digest());
  }

  /// Several daemons on one host each have a group of their own.
  private String cgroup() {
    return "space-" + Integer.toHexString(config.dataDir().toString().hashCode());
  }

  /// The driver for real VMs.
  ///
  /// @throws SpaceException PREREQUISITE_MISSING with all that is missing and how to get it
  Driver driver(InstantSource clock, SecureRandom random) {
    Optional<Setup.Ready> ready = setup.ready();
    if (ready.isEmpty()) {
      throw Prerequisite.problem(look())
          .orElseThrow(() -> new IllegalStateException("not ready, yet nothing is missing"))
          .toException();
    }
    return new Driver(
        config.vmm() == SpaceConfig.VmmChoice.FIRECRACKER
            ? firecracker(ready.get())
            : qemu(ready.get()),
        new GrpcGuestConnector(clock, random),
        templates,
        new HostDisks(disks),
        builder,
        ready.get().base());
  }

  private QemuVmm qemu(Setup.Ready ready) {
    SpaceConfig.Qemu qemu = config.qemu();
    boolean root = "root".equals(System.getProperty("user.name"));
    var settings =
        new QemuSettings(
            qemu.binary(),
            ready.boot().kernel(),
            ready.boot().initramfs(),
            Acceleration.valueOf(qemu.accelerator().toUpperCase(Locale.ROOT)),
            config.dataDir().resolve("probe"),
            root
                ? Optional.of(new UserIds.Range(qemu.uidBase(), config.limits().vmsMax()))
                : Optional.empty(),
            root ? Cgroups.open(Path.of("/"), cgroup()) : Optional.empty());
    return QemuVmm.open(settings, processes);
  }

  private FirecrackerVmm firecracker(Setup.Ready ready) {
    SpaceConfig.Firecracker firecracker = config.firecracker();
    boolean root = "root".equals(System.getProperty("user.name"));
    if (firecracker.jailer().isPresent() && !root) {
      throw Problem.of(ErrorCode.PREREQUISITE_MISSING, "Firecracker's jailer needs root")
          .because("this service runs as " + System.getProperty("user.name"))
          .remedy("Run it as root; for development alone, set firecracker.jailer to none.")
          .toException();
    }
    Jail jail =
        firecracker
            .jailer()
            .<Jail>map(
                jailer ->
                    new Jail.Jailer(
                        jailer, new UserIds.Range(firecracker.uidBase(), config.limits().vmsMax())))
            .orElseGet(Jail.None::new);
    var settings =
        new FirecrackerSettings(
            firecracker.binary(),
            jail,
            setup.vmlinux(),
            ready.boot().initramfs(),
            Duration.ofSeconds(firecracker.callSeconds()),
            new FirecrackerSettings.DiskRate(firecracker.diskOps(), firecracker.diskBytes()),
            root ? Cgroups.open(Path.of("/"), cgroup()) : Optional.empty());
    return FirecrackerVmm.open(settings, processes);
  }
}
