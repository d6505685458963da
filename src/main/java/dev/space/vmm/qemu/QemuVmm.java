package dev.space.vmm.qemu;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.vm.Isolation;
import dev.space.core.vm.MemoryImage;
import dev.space.core.vm.Vm;
import dev.space.core.vm.VmIdentity;
import dev.space.core.vm.VmSpec;
import dev.space.core.vm.Vmm;
import dev.space.host.Cgroups;
import dev.space.host.LogBound;
import dev.space.host.ProcessIdentity;
import dev.space.host.Processes;
import dev.space.host.UserIds;
import dev.space.vmm.memory.WholeMemory;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Runs VMs with QEMU: with KVM where a guest really runs with it, in software elsewhere.
public final class QemuVmm implements Vmm {

  private static final Logger LOG = LoggerFactory.getLogger(QemuVmm.class);

  /// Grows with every change of the machine or of what is saved.
  private static final int FORMAT = 1;

  private static final String PRIVATE_MEMORY = "share=off,mem-path=";

  private final QemuSettings settings;
  private final QemuVersion version;
  private final boolean kvm;
  private final Launcher launcher;
  private final UserIds users;
  private final LogBound logs = new LogBound();
  private final boolean mayTrace;

  private QemuVmm(
      QemuSettings settings,
      QemuVersion version,
      boolean kvm,
      Processes processes,
      boolean mayTrace) {
    this.settings = settings;
    this.mayTrace = mayTrace;
    this.version = version;
    this.kvm = kvm;
    launcher = new Launcher(processes);
    users = new UserIds(settings.users());
    settings.cgroups().ifPresent(Cgroups::sweep);
  }

  /// Looks at the installed QEMU and, when asked to choose, tries whether KVM runs a guest: up to
  /// ten seconds, once per boot of the host.
  ///
  /// @throws dev.space.core.error.SpaceException PREREQUISITE_MISSING when there is no usable QEMU,
  ///   or no usable KVM where that was demanded
  public static QemuVmm open(QemuSettings settings, Processes processes) {
    return open(settings, processes, true);
  }

  /// @param mayTrace false as where the kernel lets nobody look into another process: memory is
  ///   then saved and loaded as a whole
  static QemuVmm open(QemuSettings settings, Processes processes, boolean mayTrace) {
    QemuVersion version = QemuVersion.of(processes, settings.binary());
    boolean kvm = new AcceleratorProbe(settings, version, new Launcher(processes)).kvm();
    LOG.info("QEMU {} runs guests {}", version.full(), kvm ? "with KVM" : "in software (TCG)");
    return new QemuVmm(settings, version, kvm, processes, mayTrace);
  }

  @Override
  public Isolation isolation() {
    return kvm ? Isolation.QEMU_KVM : Isolation.QEMU_TCG;
  }

  @Override
  public String snapshotFormat() {
    return isolation().wire() + "-" + version.full() + "-" + FORMAT;
  }

  @Override
  public String bootFingerprint() {
    // The initramfs is named by a hash over kernel, modules and agent.
    String name = settings.initramfs().getFileName().toString();
    return Integer.toHexString(name.hashCode());
  }

  @Override
  public Vm boot(VmSpec spec) {
    return launch(
        spec, Optional.empty(), line -> line.boot(settings.kernel(), settings.initramfs()));
  }

  @Override
  public Vm restore(VmSpec spec, MemoryImage image) {
    Optional<Path> changes = image.changes();
    Path memory = image.memory().toAbsolutePath();
    QemuVm vm = launch(spec, Optional.of(memory), line -> line.restore(memory));
    try {
      if (changes.isPresent() && !vm.loadChanges(memory, changes.get())) {
        vm.kill();
        Path own = spec.directory().toAbsolutePath().resolve(CommandLine.MEMORY);
        own.toFile().delete();
        WholeMemory.make(memory, changes.get(), own);
        vm = launch(spec, Optional.of(own), line -> line.restore(own));
      }
      vm.load(image.state());
      return vm;
    } catch (SpaceException e) {
      vm.kill();
      throw e;
    }
  }

  private QemuVm launch(
      VmSpec spec, Optional<Path> image, Function<CommandLine, List<String>> arguments) {
    Optional<Integer> user = users.take();
    Events events = new Events();
    boolean done = false;
    try {
      CommandLine line = new CommandLine(settings.binary(), version, kvm, spec, user);
      Optional<Path> leaf =
          settings
              .cgroups()
              .flatMap(
                  groups ->
                      groups.make(
                          spec.id(),
                          spec.resources().vcpus(),
                          (long) spec.resources().memoryMib() << 20));
      Launcher.Started started =
          launcher.start(spec.directory(), arguments.apply(line), user, leaf, events::take);
      QemuVm vm = vm(spec, started, image, user, events);
      done = true;
      return vm;
    } finally {
      if (!done) {
        users.release(user);
        settings.cgroups().ifPresent(groups -> groups.remove(spec.id()));
      }
    }
  }

  private QemuVm vm(
      VmSpec spec,
      Launcher.Started started,
      Optional<Path> image,
      Optional<Integer> user,
      Events events) {
    StateTransfer transfer =
        new StateTransfer(spec, started.process(), started.qmp(), image, user, events, mayTrace);
    Path log = spec.directory().resolve(Launcher.LOG);
    logs.add(log);
    return new QemuVm(
        spec,
        started,
        transfer,
        events,
        () -> {
          logs.remove(log);
          users.release(user);
          settings.cgroups().ifPresent(groups -> groups.remove(spec.id()));
        });
  }

  /// The process is the one that the journal names and works in this directory, and its control
  /// socket stands in a directory where nobody but the daemon's user can put one: so it is its own.
  @Override
  public Optional<Vm> adopt(VmSpec spec, VmIdentity identity, Duration deadline) {
    ProcessIdentity process = new ProcessIdentity(identity.pid(), identity.startTicks());
    List<String> arguments = process.alive() ? process.arguments() : List.of();
    Path mine = CommandLine.pidFile(spec.directory()).normalize();
    if (!pidFile(arguments).filter(mine::equals).isPresent()) {
      return Optional.empty();
    }
    Optional<Integer> user = settings.users().isPresent() ? process.user() : Optional.empty();
    user.ifPresent(users::adopt);
    Events events = new Events();
    try {
      // QEMU serves one client at a time: behind another one's back nothing is answered.
      Qmp qmp =
          Qmp.connect(Launcher.socket(spec.directory(), CommandLine.QMP_SOCKET), events::take);
      String status;
      try {
        qmp.open(deadline);
        status = qmp.execute("query-status", deadline).path("status").asString("");
      } catch (SpaceException e) {
        qmp.close();
        throw e;
      }
      QemuVm vm = vm(spec, new Launcher.Started(process, qmp), image(arguments), user, events);
      switch (status) {
        case "shutdown" -> vm.ended("guest-shutdown");
        case "guest-panicked" -> vm.ended("guest-panic");
        case "inmigrate" -> vm.kill();
        default -> {
          // It runs or is paused.
        }
      }
      return Optional.of(vm);
    } catch (IOException | SpaceException e) {
      LOG.warn("QEMU process {} of VM {} can't be adopted", process.pid(), spec.id(), e);
      return Optional.empty();
    }
  }

  @Override
  public Map<Path, VmIdentity> running(Path root) {
    Path parent = root.toAbsolutePath().normalize();
    Map<Path, VmIdentity> found = new HashMap<>();
    for (ProcessIdentity process : ProcessIdentity.all()) {
      List<String> arguments = process.arguments();
      pidFile(arguments)
          .map(Path::getParent)
          .filter(directory -> parent.equals(directory.getParent()))
          .ifPresent(
              directory ->
                  found.put(directory, new VmIdentity(process.pid(), process.startTicks())));
    }
    return Map.copyOf(found);
  }

  @Override
  public void materialise(MemoryImage image, Path target) {
    Path changes =
        image
            .changes()
            .orElseThrow(
                () -> Problem.of(ErrorCode.VMM_FAILED, "The image has no changes.").toException());
    WholeMemory.make(image.memory(), changes, target);
  }

  /// The file that every process of this driver is told to write its pid to: the mark by which one
  /// is known, in every phase of its start.
  private static Optional<Path> pidFile(List<String> arguments) {
    int at = arguments.indexOf("-pidfile");
    return at < 0 || at + 1 >= arguments.size()
        ? Optional.empty()
        : Optional.of(Path.of(arguments.get(at + 1)).normalize());
  }

  /// The image that a process maps privately, as its arguments name it.
  private static Optional<Path> image(List<String> arguments) {
    return arguments.stream()
        .filter(argument -> argument.contains(PRIVATE_MEMORY))
        .map(argument -> argument.substring(argument.indexOf(PRIVATE_MEMORY)))
        .map(part -> Path.of(part.substring(PRIVATE_MEMORY.length()).replace(",,", ",")))
        .findFirst();
  }
}
