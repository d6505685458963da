package dev.space.node;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.Guest;
import dev.space.core.guest.GuestLink;
import dev.space.core.node.LaunchSpec;
import dev.space.core.node.NodeRuntime.Progress;
import dev.space.core.template.Template;
import dev.space.core.vm.MemoryImage;
import dev.space.core.vm.Vm;
import dev.space.core.vm.VmSpec;
import dev.space.node.FailPoints.Point;
import dev.space.node.VmEntry.State;
import java.nio.file.Path;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Makes sandboxes: the path from a create to the guest's answer.
final class Launches {

  private static final Logger log = LoggerFactory.getLogger(Launches.class);

  private final Workbench bench;
  private final Bases bases;
  private final Snapshots snapshots;
  private final Watch watch;

  Launches(Workbench bench, Bases bases, Snapshots snapshots, Watch watch) {
    this.bench = bench;
    this.bases = bases;
    this.snapshots = snapshots;
    this.watch = watch;
  }

  /// Restores a new VM for a sandbox. The caller has the machine's lane and has registered it.
  void restore(Machine machine, LaunchSpec spec, Progress progress) {
    try {
      Frozen frozen = promised(machine, spec, progress);
      machine.check();
      progress.report("restoring");
      VmEntry entry = begin(machine, frozen, State.CREATING, Optional.of(spec.sandboxId()));
      bench.failPoints().reach(Point.CREATE_AFTER_JOURNAL);
      Vm vm = start(machine, entry, frozen);
      machine.check();
      vm.resume();
      bench.failPoints().reach(Point.CREATE_AFTER_RESUME);
      machine.link(connect(machine, vm, spec.adoption()));
      bench.failPoints().reach(Point.CREATE_AFTER_ADOPT);
      owned(machine, spec.adoption());
    } catch (Exception e) {
      discard(machine);
      throw Failures.of(e, "Creating the sandbox failed", machine);
    }
  }

  /// Gives an idle VM to a sandbox. The caller has claimed it, has its lane and has registered it.
  /// It has an identity of its own since it was made warm; what is the owner's it is told now.
  void claim(Machine machine, LaunchSpec spec) {
    try {
      GuestLink link =
          machine
              .link()
              .filter(open -> !open.closed().isDone())
              .orElseThrow(
                  () ->
                      Problem.of(ErrorCode.GUEST_UNREACHABLE, "The warm VM lost its link")
                          .toException());
      machine.check();
      VmEntry entry =
          machine.requireEntry().in(State.RUNNING).ownedBy(spec.sandboxId()).nextGeneration();
      bench.journal().write(entry);
      machine.entry(entry);
      bench.failPoints().reach(Point.WARM_CLAIMED);
      watch.rejoin(machine, link, Watch.same(spec.adoption()));
    } catch (Exception e) {
      discard(machine);
      throw Failures.of(e, "Claiming a warm VM failed", machine);
    }
  }

  /// Restores a VM that waits for an owner. The caller has its lane.
  void warm(Machine machine, Frozen frozen) {
    try {
      bench.admission().promiseSpare(machine, frozen.resources());
      VmEntry entry = begin(machine, frozen, State.WARM, Optional.empty());
      Vm vm = start(machine, entry, frozen);
      bench.failPoints().reach(Point.WARM_RESTORED);
      vm.resume();
      Template.Defaults defaults = bench.images().defaults(frozen.origin().template());
      Guest.Adoption nobody =
          new Guest.Adoption(
              true, machine.id(), "warm", defaults.env(), defaults.user(), defaults.workdir());
      GuestLink link = connect(machine, vm, nobody);
      machine.link(link);
      Warmth.rehearse(link);
      watch.over(machine);
    } catch (Exception e) {
      discard(machine);
      throw Failures.of(e, "Making a warm VM failed", machine);
    }
  }

  /// Finds what to restore from and promises the machine its VM. Without room nothing is made; but
  /// while a base snapshot is made its VM has that room.
  private Frozen promised(Machine machine, LaunchSpec spec, Progress progress) {
    bench.admission().promise(machine, spec.resources());
    return switch (spec.source()) {
      case LaunchSpec.Source.Snapshot(String id) -> snapshots.require(id, spec.resources());
      case LaunchSpec.Source.Template(String digest) -> {
        Optional<Frozen> there = bases.find(digest, spec.resources());
        if (there.isPresent()) {
          yield there.get();
        }
        bench.admission().release(machine);
        Frozen made = bases.get(digest, spec.resources(), progress, machine.cancelled());
        bench.admission().promise(machine, spec.resources());
        yield made;
      }
    };
  }

  private VmEntry begin(Machine machine, Frozen frozen, State state, Optional<String> owner) {
    VmEntry entry =
        new VmEntry(
            VmEntry.VERSION,
            machine.id(),
            state,
            owner,
            frozen.origin(),
            frozen.resources(),
            Optional.empty(),
            frozen.generation(),
            false,
            false,
            frozen.format());
    // The entry is what keeps the source from being deleted, so it is known before the source is
    // looked at again.
    machine.entry(entry);
    bench.journal().begin(entry);
    return entry;
  }

  private Vm start(Machine machine, VmEntry entry, Frozen frozen) {
    bench.disks().copy(frozen.disk(), machine.disk());
    Folders.conceal(machine.disk());
    bench.failPoints().reach(Point.CREATE_AFTER_DISK);
    return start(machine, entry, frozen.image());
  }

  /// Starts the VM process of an entry, paused, and journals it.
  Vm start(Machine machine, VmEntry entry, MemoryImage image) {
    machine.check();
    Vm vm = bench.vmm().restore(spec(bench, machine, entry), image);
    machine.vm(vm);
    bench.failPoints().reach(Point.CREATE_AFTER_RESTORE);
    VmEntry running = entry.running(vm.identity()).nextGeneration();
    bench.journal().write(running);
    machine.entry(running);
    return vm;
  }

  static VmSpec spec(Workbench bench, Machine machine, VmEntry entry) {
    Path root = bench.images().root(entry.origin().template());
    return new VmSpec(entry.id(), machine.directory(), entry.resources(), root, machine.disk());
  }

  private GuestLink connect(Machine machine, Vm vm, Guest.Adoption adoption) {
    return bench
        .connector()
        .connect(
            vm, machine.requireEntry().generation(), adoption, bench.settings().guestDeadline());
  }

  private void owned(Machine machine, Guest.Adoption adoption) {
    machine.check();
    VmEntry entry = machine.requireEntry().in(State.RUNNING);
    bench.journal().write(entry);
    machine.adoption(adoption);
    machine.entry(entry);
    watch.over(machine);
  }

  /// Removes all of a machine that has come to nothing.
  void discard(Machine machine) {
    try {
      bench.failPoints().reach(Point.BACKGROUND);
      machine.dropVm();
      Folders.remove(machine.directory());
    } catch (RuntimeException e) {
      log.warn("Cleaning up {} failed, the next start does it: {}", machine.id(), e.toString());
    } finally {
      bench.admission().release(machine);
    }
  }
}
