package dev.space.vmm.firecracker;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.vm.Isolation;
import dev.space.core.vm.MemoryImage;
import dev.space.core.vm.Vm;
import dev.space.core.vm.VmIdentity;
import dev.space.core.vm.VmSpec;
import dev.space.core.vm.Vmm;
import dev.space.host.DiskFull;
import dev.space.host.LogBound;
import dev.space.host.ProcessIdentity;
import dev.space.host.Processes;
import dev.space.host.UserIds;
import dev.space.vmm.firecracker.FirecrackerSettings.Jail;
import dev.space.vmm.firecracker.Phase.Call;
import dev.space.vmm.memory.WholeMemory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Runs VMs with Firecracker.
public final class FirecrackerVmm implements Vmm {

  private static final Logger LOG = LoggerFactory.getLogger(FirecrackerVmm.class);

  /// Grows with every change of the machine or of what is saved.
  private static final int FORMAT = 1;

  private static final List<String> WRITTEN =
      List.of(Ground.OUTPUT, Ground.LOG, Ground.CONSOLE, Ground.METRICS);

  private final FirecrackerSettings settings;
  private final FirecrackerVersion version;
  private final Compatibility here;
  private final Launcher launcher;
  private final Description description;
  private final UserIds users;
  private final LogBound logs = new LogBound();
  private final Counters counters = new Counters();
  private final Halts halts = new Halts();
  private final Map<Path, Boolean> exactHoles = new ConcurrentHashMap<>();

  private FirecrackerVmm(
      FirecrackerSettings settings, Path binary, FirecrackerVersion version, Processes processes) {
    this.settings = settings;
    this.version = version;
    this.here = Compatibility.here(version, Path.of("/proc"));
    this.launcher = new Launcher(settings, binary, version, processes);
    this.description = new Description(version, settings.diskRate());
    this.users =
        new UserIds(
            switch (settings.jail()) {
              case Jail.None _ -> Optional.empty();
              case Jail.Jailer(String _, UserIds.Range range) -> Optional.of(range);
            });
    settings.cgroups().ifPresent(groups -> groups.sweep());
  }

  /// Looks at the installed Firecracker and jailer.
  ///
  /// @throws dev.space.core.error.SpaceException PREREQUISITE_MISSING when there is none, one that
  ///   is too old, or a jailer of another release
  public static FirecrackerVmm open(FirecrackerSettings settings, Processes processes) {
    FirecrackerVersion version = FirecrackerVersion.of(processes, settings.binary());
    Path binary = required(processes, settings.binary());
    switch (settings.jail()) {
      case Jail.None _ ->
          LOG.warn(
              "Firecracker {} runs WITHOUT ITS JAILER, as who this service runs as: a guest that"
                  + " breaks out of it has all that this service has. For development alone.",
              version.full());
      case Jail.Jailer(String jailer, UserIds.Range _) -> {
        requireRelease(processes, jailer, version);
        LOG.info("Firecracker {} runs guests, each in a jail", version.full());
      }
    }
    return new FirecrackerVmm(settings, binary, version, processes);
  }

  private static Path required(Processes processes, String tool) {
    Path found =
        processes
            .find(tool)
            .orElseThrow(
                () ->
                    Problem.of(ErrorCode.PREREQUISITE_MISSING, tool + " is not installed")
                        .toException());
    try {
      return found.toRealPath();
    } catch (IOException e) {
      throw Problem.of(ErrorCode.PREREQUISITE_MISSING, tool + " can't be read")
          .because(e)
          .toException(e);
    }
  }

  private static void requireRelease(
      Processes processes, String jailer, FirecrackerVersion version) {
    String said =
        processes
            .run(dev.space.host.Command.of(Duration.ofSeconds(20), jailer, "--version"))
            .said();
    if (!said.contains("v" + version.full())) {
      throw Problem.of(ErrorCode.PREREQUISITE_MISSING, "The jailer is of another release.")
          .because("it says '" + said.strip() + "', Firecracker is " + version.full())
          .remedy("Install both from one release.")
          .toException();
    }
  }

  /// Whether each process has a jail around it.
  public boolean jailed() {
    return settings.jail() instanceof Jail.Jailer;
  }

  /// Version of the Firecracker, as it names itself.
  public String version() {
    return version.full();
  }

  @Override
  public Isolation isolation() {
    return Isolation.FIRECRACKER;
  }

  @Override
  public String snapshotFormat() {
    return here.word() + "-" + FORMAT;
  }

  @Override
  public String bootFingerprint() {
    String names =
        settings.initramfs().getFileName().toString() + " " + settings.kernel().getFileName();
    return Integer.toHexString(names.hashCode());
  }

  @Override
  public Map<String, Long> counters() {
    return counters.now();
  }

  // -- boot and restore

  @Override
  public Vm boot(VmSpec spec) {
    return made(
        spec,
        run -> {
          run.ground().lend(Ground.KERNEL, settings.kernel());
          run.ground().lend(Ground.INITRAMFS, settings.initramfs());
          FirecrackerVm vm = run.start(Optional.empty());
          vm.put(Call.DESCRIBE, "/machine-config", description.machine(spec));
          vm.put(Call.DESCRIBE, "/boot-source", description.boot());
          for (String drive : List.of(Ground.ROOT_IMAGE, Ground.DISK)) {
            boolean readOnly = drive.equals(Ground.ROOT_IMAGE);
            vm.put(Call.DESCRIBE, "/drives/" + drive, description.drive(drive, readOnly));
          }
          vm.put(Call.DESCRIBE, "/vsock", Description.vsock());
          vm.put(Call.DESCRIBE, "/entropy", Map.of());
          vm.put(Call.DESCRIBE, "/balloon", Description.balloon());
          vm.boot();
          return vm;
        });
  }

  @Override
  public Vm restore(VmSpec spec, MemoryImage image) {
    long start = System.nanoTime();
    return made(
        spec,
        run -> {
          StateFile.Content saved = compatible(image.state());
          Files.write(run.ground().fresh(Ground.STATE), saved.state());
          Memory.lend(run.ground(), image);
          RunFile.write(run.ground(), image.memory());
          FirecrackerVm vm = run.start(Optional.of(image.memory()));
          vm.load();
          run.ground().drop(Ground.STATE);
          if (!saved.manifest().diskRate().equals(settings.diskRate())) {
            for (String drive : List.of(Ground.ROOT_IMAGE, Ground.DISK)) {
              vm.rate(drive, description.driveRate(drive));
            }
          }
          long all = System.nanoTime() - start;
          counters.count("restores", 1);
          counters.count("restore_micros", all / 1000);
          counters.count("restore_waited_micros", (run.startNanos + vm.waitedNanos()) / 1000);
          return vm;
        });
  }

  private StateFile.Content compatible(Path state) throws IOException {
    StateFile.Content saved = StateFile.read(state);
    Optional<String> difference = here.differenceFrom(saved.manifest().compatibility());
    if (difference.isPresent()) {
      throw Problem.of(
              ErrorCode.SNAPSHOT_DAMAGED, "The saved state can't be restored on this host.")
          .because(difference.get())
          .remedy("Restore it where it was saved, or make the sandbox anew from its template.")
          .toException();
    }
    return saved;
  }

  /// What makes a VM out of a prepared ground.
  @FunctionalInterface
  private interface Making {
    FirecrackerVm make(Run run) throws IOException;
  }

  /// One attempt to make a VM.
  private final class Run {
    private final VmSpec spec;
    private final Ground ground;
    private final Optional<Path> leaf;
    private long startNanos;
    private Optional<FirecrackerVm> vm = Optional.empty();

    Run(VmSpec spec, Ground ground, Optional<Path> leaf) {
      this.spec = spec;
      this.ground = ground;
      this.leaf = leaf;
    }

    Ground ground() {
      return ground;
    }

    FirecrackerVm start(Optional<Path> image) throws IOException {
      ground.lend(Ground.ROOT_IMAGE, spec.rootImage());
      ground.give(Ground.DISK, spec.disk());
      ground.fresh(Ground.CONSOLE);
      ground.fresh(Ground.METRICS);
      Launcher.Started started = launcher.start(ground, spec.id(), leaf);
      startNanos = started.startNanos();
      FirecrackerVm made = vm(spec, ground, started, image, Phase.FRESH);
      vm = Optional.of(made);
      made.put(Call.OBSERVE, "/metrics", description.metrics(spec.id()));
      made.put(Call.OBSERVE, "/serial", description.serial());
      return made;
    }
  }

  private Vm made(VmSpec spec, Making making) {
    Optional<Integer> user = users.take();
    Optional<Run> run = Optional.empty();
    boolean done = false;
    try {
      Ground ground = launcher.ground(spec.directory(), spec.id(), user);
      ground.prepare();
      Optional<Path> leaf =
          settings
              .cgroups()
              .flatMap(
                  groups -> groups.make(spec.id(), spec.resources().vcpus(), memoryBytes(spec)));
      run = Optional.of(new Run(spec, ground, leaf));
      Vm vm = making.make(run.get());
      done = true;
      return vm;
    } catch (IOException e) {
      throw Problem.of(
              DiskFull.isSaidBy(e) ? ErrorCode.DISK_FULL : ErrorCode.VMM_FAILED,
              "A VM's files could not be prepared.")
          .because(String.valueOf(e.getMessage()))
          .toException(e);
    } finally {
      if (!done) {
        Optional<FirecrackerVm> half = run.flatMap(r -> r.vm);
        if (half.isPresent()) {
          half.get().kill();
        } else {
          released(spec, user);
          run.ifPresent(r -> clear(r.ground()));
        }
      }
    }
  }

  private static void clear(Ground ground) {
    try {
      ground.clear();
    } catch (IOException e) {
      LOG.warn("'{}' is not removed: {}", ground.home(), e.toString());
    }
  }

  private void released(VmSpec spec, Optional<Integer> user) {
    users.release(user);
    settings.cgroups().ifPresent(groups -> groups.remove(spec.id()));
  }

  private static long memoryBytes(VmSpec spec) {
    return (long) spec.resources().memoryMib() << 20;
  }

  private FirecrackerVm vm(
      VmSpec spec, Ground ground, Launcher.Started started, Optional<Path> image, Phase phase) {
    WRITTEN.forEach(name -> logs.add(ground.file(name)));
    counters.add(ground.file(Ground.METRICS));
    ProcessIdentity process = started.process();
    FirecrackerVm vm =
        new FirecrackerVm(
            new FirecrackerVm.Parts(
                spec,
                ground,
                new Memory(ground, memoryBytes(spec), image),
                new StateFile.Manifest(
                    StateFile.Manifest.VERSION, version.full(), here, settings.diskRate()),
                settings.call(),
                keepsHoles(spec.directory()),
                () -> {
                  settings.cgroups().ifPresent(groups -> groups.kill(spec.id()));
                  process.kill();
                },
                () -> {
                  WRITTEN.forEach(name -> logs.remove(ground.file(name)));
                  counters.remove(ground.file(Ground.METRICS));
                  released(spec, ground.user());
                }),
            process,
            started.api(),
            phase);
    halts.add(vm, ground.file(Ground.CONSOLE));
    vm.exit().thenRun(() -> halts.remove(vm));
    return vm;
  }

  /// All VMs of a data directory are on one file system.
  private boolean keepsHoles(Path directory) {
    return exactHoles.computeIfAbsent(
        directory.toAbsolutePath().resolveSibling(""),
        _ -> {
          try {
            return Memory.keepsHoles(directory);
          } catch (IOException e) {
            return false;
          }
        });
  }

  // -- what a former daemon left

  @Override
  public Optional<Vm> adopt(VmSpec spec, VmIdentity identity, Duration deadline) {
    ProcessIdentity process = new ProcessIdentity(identity.pid(), identity.startTicks());
    Path directory = spec.directory().toAbsolutePath().normalize();
    Optional<Ground> found = process.alive() ? Traces.ground(process, directory) : Optional.empty();
    if (found.isEmpty()) {
      return Optional.empty();
    }
    Ground ground = found.get();
    ground.user().ifPresent(users::adopt);
    try {
      Api api = Api.connect(ground.socket(Ground.API), ground.user(), process::kill);
      String state;
      try {
        state = api.get("/", deadline).path("state").asString("");
      } catch (SpaceException e) {
        api.close();
        throw e;
      }
      Phase phase =
          switch (state) {
            case "Running" -> Phase.RUNNING;
            case "Paused" -> Phase.PAUSED;
            default -> Phase.FRESH;
          };
      FirecrackerVm vm =
          vm(spec, ground, new Launcher.Started(process, api, 0), RunFile.read(ground), phase);
      if (phase instanceof Phase.Fresh) {
        // Its daemon died between its start and its guest's.
        vm.kill();
      }
      return Optional.of(vm);
    } catch (IOException | SpaceException e) {
      LOG.warn("Firecracker process {} of VM {} can't be adopted", process.pid(), spec.id(), e);
      return Optional.empty();
    }
  }

  @Override
  public Map<Path, VmIdentity> running(Path root) {
    return new Traces(root).running();
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
}
