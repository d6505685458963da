package dev.space.node;

import dev.space.core.error.SpaceException;
import dev.space.core.node.LaunchSpec;
import dev.space.core.node.NodeRuntime.Recovered;
import dev.space.core.vm.Vm;
import dev.space.core.vm.VmIdentity;
import dev.space.core.vm.VmSpec;
import dev.space.host.ProcessIdentity;
import dev.space.node.VmEntry.State;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Puts in order what a former daemon left. Every VM directory and every VM process ends up owned
/// by a known sandbox, or gone.
final class Recovery {

  private static final Logger log = LoggerFactory.getLogger(Recovery.class);

  private static final Duration KILL_DEADLINE = Duration.ofSeconds(10);
  private static final long LEAST_NANOS = Duration.ofSeconds(1).toNanos();

  private final Workbench bench;
  private final Snapshots snapshots;
  private final Watch watch;
  private final Map<String, Machine> sandboxes;
  private final Set<String> running = ConcurrentHashMap.newKeySet();
  private final Set<String> paused = ConcurrentHashMap.newKeySet();
  private final Set<String> suspended = ConcurrentHashMap.newKeySet();

  Recovery(Workbench bench, Snapshots snapshots, Watch watch, Map<String, Machine> sandboxes) {
    this.bench = bench;
    this.snapshots = snapshots;
    this.watch = watch;
    this.sandboxes = sandboxes;
  }

  Recovered recover(Set<LaunchSpec> known) {
    Map<String, LaunchSpec> specs = new HashMap<>();
    known.forEach(spec -> specs.put(spec.sandboxId(), spec));
    Map<Path, VmIdentity> processes = new HashMap<>(bench.vmm().running(bench.folders().vms()));
    long end = System.nanoTime() + bench.settings().recoveryBudget().toNanos();
    try (ExecutorService each = Executors.newVirtualThreadPerTaskExecutor()) {
      for (Path directory : Folders.children(bench.folders().vms())) {
        Optional<VmIdentity> process = Optional.ofNullable(processes.remove(directory));
        each.execute(() -> recover(directory, process, specs, end));
      }
      processes.forEach((directory, process) -> each.execute(() -> end(directory, process)));
    }
    sweepPartials(bench.folders().bases());
    sweepPartials(bench.folders().snapshots());
    sweepBases();
    return new Recovered(Set.copyOf(running), Set.copyOf(paused), Set.copyOf(suspended));
  }

  private void sweepPartials(Path parent) {
    for (Path path : Folders.children(parent)) {
      if (path.getFileName().toString().endsWith(Folders.PARTIAL)) {
        log.info("Removing {}, which was never finished", path);
        Folders.remove(path);
      }
    }
  }

  /// Removes base snapshots that this driver can't restore and that no suspended sandbox builds
  /// upon: those of former versions of the VMM. They are made again when they are needed.
  private void sweepBases() {
    Set<String> used = ConcurrentHashMap.newKeySet();
    for (Machine machine : sandboxes.values()) {
      machine.entry().ifPresent(entry -> used.add(entry.origin().name()));
    }
    for (Path directory : Folders.children(bench.folders().bases())) {
      String name = directory.getFileName().toString();
      if (!used.contains(name) && !restorable(directory, name)) {
        log.info("Removing base snapshot {}, which is of another version", name);
        Folders.remove(directory);
      }
    }
  }

  private boolean restorable(Path directory, String name) {
    try {
      return name.endsWith(Bases.bootSuffix(bench.vmm()))
          && Frozen.read(directory, new VmEntry.Origin(VmEntry.Origin.Kind.BASE, name, ""))
              .format()
              .equals(bench.vmm().snapshotFormat());
    } catch (SpaceException e) {
      return false;
    }
  }

  private void recover(
      Path directory, Optional<VmIdentity> process, Map<String, LaunchSpec> specs, long end) {
    VmEntry entry;
    try {
      entry = Journal.read(directory);
    } catch (SpaceException e) {
      process.ifPresent(identity -> end(directory, identity));
      setAside(directory, e);
      return;
    }
    try {
      Optional<LaunchSpec> spec = entry.owner().map(specs::get);
      if (spec.isEmpty()) {
        log.info("Removing {} ({}), which nobody owns", directory, entry.state());
        process.ifPresent(identity -> end(directory, identity));
        Folders.remove(directory);
      } else {
        recover(directory, entry, process, spec.get(), end);
      }
    } catch (RuntimeException e) {
      log.error("Recovering {} failed", directory, e);
    }
  }

  /// An entry without a directory's content is a create that had only begun; anything else that
  /// can't be read is kept for people to look at.
  private void setAside(Path directory, SpaceException why) {
    try {
      if (!Journal.exists(directory)) {
        log.info("Removing {}, which was never begun", directory);
        Folders.remove(directory);
        return;
      }
      Files.createDirectories(bench.folders().aside());
      Path target =
          bench.folders().aside().resolve(directory.getFileName() + "-" + Names.fresh("bad"));
      Folders.publish(directory, target);
      log.error(
          "{} can't be understood and was moved to {}: {}", directory, target, why.toString());
    } catch (IOException | SpaceException e) {
      log.error("{} can't be understood and could not be moved away", directory, e);
    }
  }

  private void recover(
      Path directory, VmEntry entry, Optional<VmIdentity> process, LaunchSpec spec, long end) {
    Machine machine = new Machine(entry.id(), directory);
    machine.entry(entry);
    machine.adoption(Watch.same(spec.adoption()));
    Optional<Vm> vm = process.flatMap(identity -> adopt(machine, entry, identity, end));
    if (vm.isPresent()) {
      machine.vm(vm.get());
      bench.admission().force(machine, entry.resources());
    } else {
      process.ifPresent(Recovery::kill);
    }
    switch (entry.state()) {
      case BASE, WARM, CREATING, DELETING -> remove(machine);
      case RUNNING -> keepRunning(machine, end);
      case PAUSED -> keepPaused(machine);
      case SUSPENDING -> finishSuspend(machine, end);
      case SUSPENDED -> keepSuspended(machine, entry);
      case WAKING -> undoWake(machine);
      case ENDED -> ended(machine);
    }
  }

  private Optional<Vm> adopt(Machine machine, VmEntry entry, VmIdentity process, long end) {
    VmSpec spec = Launches.spec(bench, machine, entry);
    Optional<Vm> vm = bench.vmm().adopt(spec, process, left(end));
    if (vm.isPresent() && entry.identity().isPresent() && !entry.identity().get().equals(process)) {
      log.warn("{} has process {}, not the {} of its entry", entry.id(), process, entry.identity());
    }
    return vm;
  }

  /// What is left of the budget; never nothing, so that what answers at once is always heard.
  private static Duration left(long end) {
    return Duration.ofNanos(Math.max(LEAST_NANOS, end - System.nanoTime()));
  }

  private void remove(Machine machine) {
    machine.dropVm();
    Folders.remove(machine.directory());
    bench.admission().release(machine);
    log.info("{} was {} and is removed", machine.id(), machine.requireEntry().state());
  }

  private void keepRunning(Machine machine, long end) {
    Optional<Vm> vm = machine.vm();
    if (vm.isEmpty()) {
      ended(machine);
      return;
    }
    try {
      VmEntry entry = machine.requireEntry().in(State.RUNNING).nextGeneration();
      entry = entry.running(vm.get().identity());
      bench.journal().write(entry);
      machine.entry(entry);
      vm.get().resume();
      machine.link(
          bench
              .connector()
              .connect(vm.get(), entry.generation(), machine.adoption().orElseThrow(), left(end)));
      // What a wake left when the daemon died at its very end.
      Folders.remove(machine.saved());
      Folders.remove(Folders.partial(machine.saved()));
      register(machine);
      watch.over(machine);
      running.add(owner(machine));
    } catch (RuntimeException e) {
      log.warn("The guest of {} could not be adopted: {}", machine.id(), e.toString());
      machine.dropVm();
      ended(machine);
    }
  }

  private void keepPaused(Machine machine) {
    if (machine.vm().isEmpty()) {
      ended(machine);
      return;
    }
    machine.requireVm().pause();
    Folders.remove(Folders.partial(machine.saved()));
    bench.journal().write(machine.requireEntry());
    register(machine);
    watch.over(machine);
    paused.add(owner(machine));
  }

  /// Whole saved state means that the guest has not run since: the suspend is finished. Otherwise
  /// the sandbox is again what it was.
  private void finishSuspend(Machine machine, long end) {
    VmEntry entry = machine.requireEntry();
    if (Saved.isWhole(machine.saved(), machine.disk(), entry.format())) {
      bench.journal().writeForced(entry.in(State.SUSPENDED).withoutVm());
      machine.dropVm();
      keepSuspended(machine, entry.in(State.SUSPENDED).withoutVm());
      return;
    }
    Folders.remove(Folders.partial(machine.saved()));
    Folders.remove(machine.saved());
    if (entry.wasPaused()) {
      machine.entry(entry.in(State.PAUSED).wasPaused(false));
      keepPaused(machine);
    } else {
      machine.entry(entry.in(State.RUNNING));
      keepRunning(machine, end);
    }
  }

  private void keepSuspended(Machine machine, VmEntry entry) {
    // A process here is one whose end the daemon did not live to see.
    machine.dropVm();
    bench.admission().release(machine);
    machine.entry(entry);
    register(machine);
    try {
      if (Saved.hasMemory(machine.saved())) {
        snapshots.memory(entry.origin());
      }
      suspended.add(owner(machine));
    } catch (SpaceException e) {
      log.error("The saved state of {} is damaged: {}", entry.id(), e.getMessage());
    }
  }

  private void undoWake(Machine machine) {
    machine.dropVm();
    VmEntry entry = machine.requireEntry();
    Sleep.restoreDisk(machine, entry);
    VmEntry asleep = entry.in(State.SUSPENDED).withoutVm();
    bench.journal().writeForced(asleep);
    keepSuspended(machine, asleep);
  }

  private void ended(Machine machine) {
    bench.admission().release(machine);
    VmEntry entry = machine.requireEntry().in(State.ENDED).withoutVm();
    bench.journal().write(entry);
    machine.entry(entry);
    register(machine);
    log.warn("The guest of {} is gone", machine.id());
  }

  private void register(Machine machine) {
    machine.sweepOwn(machine.requireEntry().origin());
    sandboxes.put(owner(machine), machine);
  }

  private static String owner(Machine machine) {
    return machine.requireEntry().owner().orElse(machine.id());
  }

  private void end(Path directory, VmIdentity process) {
    try {
      log.warn("Ending VM process {} in {}, which nobody owns", process.pid(), directory);
      VmSpec spec =
          new VmSpec(
              directory.getFileName().toString(),
              directory,
              dev.space.core.template.Resources.DEFAULT,
              directory.resolve("root.img"),
              directory.resolve("disk.img"));
      Optional<Vm> vm = bench.vmm().adopt(spec, process, KILL_DEADLINE);
      if (vm.isPresent()) {
        vm.get().kill();
      } else {
        kill(process);
      }
    } catch (RuntimeException e) {
      log.error("VM process {} could not be ended", process.pid(), e);
    }
  }

  /// Ends a VM process that no longer answers to its driver.
  private static void kill(VmIdentity process) {
    ProcessIdentity identity = new ProcessIdentity(process.pid(), process.startTicks());
    identity.kill();
    if (!identity.awaitGone(KILL_DEADLINE)) {
      log.error("VM process {} is still there after it was killed", process.pid());
    }
  }
}
