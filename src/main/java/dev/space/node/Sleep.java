package dev.space.node;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.Guest;
import dev.space.core.guest.GuestLink;
import dev.space.core.node.LaunchSpec;
import dev.space.core.vm.Vm;
import dev.space.core.vm.VmSpec;
import dev.space.node.FailPoints.Point;
import dev.space.node.VmEntry.State;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Pause and resume, suspend and wake. Callers have the machine's lane.
final class Sleep {

  private static final Logger log = LoggerFactory.getLogger(Sleep.class);
  private static final Executor ASIDE = task -> Thread.ofVirtual().start(task);

  private final Workbench bench;
  private final Snapshots snapshots;
  private final Watch watch;
  private final Reboot reboot;

  Sleep(Workbench bench, Snapshots snapshots, Watch watch) {
    this.bench = bench;
    this.snapshots = snapshots;
    this.watch = watch;
    this.reboot = new Reboot(bench);
  }

  void pause(Machine machine) {
    VmEntry entry = machine.require("paused", State.RUNNING, State.PAUSED);
    if (entry.state() == State.PAUSED) {
      return;
    }
    Vm vm = machine.requireVm();
    vm.pause();
    bench.failPoints().reach(Point.PAUSE_AFTER_STOP);
    try {
      journal(machine, entry.in(State.PAUSED));
    } catch (Exception e) {
      vm.resume();
      throw Failures.of(e, "Pausing the sandbox failed", machine);
    }
  }

  /// The guest is adopted again, because its clock stood still; over the link it has, when that has
  /// outlived the pause.
  void resume(Machine machine, Guest.Adoption adoption) {
    VmEntry entry = machine.require("resumed", State.PAUSED, State.RUNNING);
    if (entry.state() == State.RUNNING) {
      return;
    }
    Vm vm = machine.requireVm();
    try {
      vm.resume();
      bench.failPoints().reach(Point.RESUME_AFTER_START);
      Optional<GuestLink> open = machine.linkOrJoining().filter(link -> !link.closed().isDone());
      if (open.isPresent()) {
        journal(machine, entry.in(State.RUNNING).nextGeneration());
        watch.rejoin(machine, open.get(), adoption);
      } else {
        machine.dropLink();
        connect(machine, vm, adoption);
        journal(machine, machine.requireEntry().in(State.RUNNING));
      }
    } catch (Exception e) {
      if (!vm.exit().isDone()) {
        vm.pause();
        machine.entry(machine.requireEntry().in(State.PAUSED));
      }
      throw Failures.of(e, "Resuming the sandbox failed", machine);
    }
  }

  private void connect(Machine machine, Vm vm, Guest.Adoption adoption) {
    VmEntry entry = machine.requireEntry().nextGeneration();
    journal(machine, entry);
    machine.adoption(adoption);
    machine.link(
        bench
            .connector()
            .connect(vm, entry.generation(), adoption, bench.settings().guestDeadline()));
    watch.overLink(machine);
  }

  private void journal(Machine machine, VmEntry entry) {
    bench.journal().write(entry);
    machine.entry(entry);
  }

  // -- suspend

  void suspend(Machine machine, boolean memory) {
    VmEntry before = machine.require("suspended", State.RUNNING, State.PAUSED, State.SUSPENDED);
    if (before.state() == State.SUSPENDED) {
      return;
    }
    boolean paused = before.state() == State.PAUSED;
    Vm vm = machine.requireVm();
    Path partial = Folders.partial(machine.saved());
    try {
      bench.admission().requireDisk(0);
      journal(machine, before.in(State.SUSPENDING).wasPaused(paused));
      bench.failPoints().reach(Point.SUSPEND_AFTER_JOURNAL);
      if (!memory) {
        flush(machine, vm, paused);
        bench.failPoints().reach(Point.SUSPEND_AFTER_SYNC);
      }
      machine.dropLink();
      vm.pause();
      bench.failPoints().reach(Point.SUSPEND_AFTER_STOP);
      Folders.remove(partial);
      Folders.make(partial);
      if (memory) {
        vm.save(Saved.state(partial), new Vm.MemoryTarget.Changes(Saved.changes(partial)));
        bench.failPoints().reach(Point.SUSPEND_AFTER_SAVE);
        Saved.seal(partial, machine.disk(), before.format());
      } else {
        Saved.sealDisk(partial, machine.disk(), before.format());
      }
      machine.check();
      Folders.publish(partial, machine.saved());
      bench.failPoints().reach(Point.SUSPEND_AFTER_PUBLISH);
      bench.journal().writeForced(machine.requireEntry().in(State.SUSPENDED).withoutVm());
      bench.failPoints().reach(Point.SUSPEND_BEFORE_KILL);
    } catch (Exception e) {
      rollBack(machine, vm, paused);
      throw Failures.of(e, "Suspending the sandbox failed", machine);
    }
    machine.entry(machine.requireEntry().in(State.SUSPENDED).withoutVm());
    machine.dropVm();
    bench.admission().release(machine);
  }

  /// Has the guest write all that is dirty to its disk, for which a paused one must run a moment.
  private void flush(Machine machine, Vm vm, boolean paused) {
    if (paused) {
      vm.resume();
      machine.dropLink();
      connect(machine, vm, Watch.same(machine.adoption().orElseThrow()));
    }
    sync(machine);
  }

  private static void sync(Machine machine) {
    machine
        .linkOrJoining()
        .orElseThrow(
            () ->
                Problem.of(ErrorCode.GUEST_UNREACHABLE, "The guest can't write its disk back")
                    .because("its link is lost and has not come back yet")
                    .remedy("Try again.")
                    .toException())
        .sync();
  }

  private void rollBack(Machine machine, Vm vm, boolean paused) {
    try {
      bench.failPoints().reach(Point.BACKGROUND);
      if (machine.cancelled().isDone()) {
        return;
      }
      VmEntry entry = machine.requireEntry();
      if (!vm.exit().isDone()) {
        // Once the guest runs again, what was saved is no longer the truth.
        Folders.remove(Folders.partial(machine.saved()));
        Folders.remove(machine.saved());
        if (paused) {
          vm.pause();
        } else {
          vm.resume();
          machine.adoption().ifPresent(adoption -> connect(machine, vm, Watch.same(adoption)));
        }
      }
      journal(machine, machine.requireEntry().in(paused ? State.PAUSED : State.RUNNING));
      log.info("Suspending {} was rolled back to {}", entry.id(), paused ? "paused" : "running");
    } catch (RuntimeException e) {
      log.error("Rolling back the suspend of {} failed; its VM is ended", machine.id(), e);
      machine.entry(machine.requireEntry().in(paused ? State.PAUSED : State.RUNNING));
      vm.kill();
    }
  }

  // -- wake

  void wake(Machine machine, LaunchSpec spec, boolean memory) {
    VmEntry before = machine.require("woken", State.SUSPENDED, State.RUNNING);
    if (before.state() == State.RUNNING) {
      return;
    }
    try {
      bench.admission().promise(machine, before.resources());
      bench.admission().requireDisk(bench.disks().occupied(machine.disk()));
      VmEntry entry = before.in(State.WAKING).diskKept(false);
      journal(machine, entry);
      bench.failPoints().reach(Point.WAKE_AFTER_JOURNAL);
      boolean saved = Saved.hasMemory(machine.saved());
      if (saved) {
        Vm vm = restoreSaved(machine, entry);
        bench.failPoints().reach(Point.WAKE_AFTER_RESTORE);
        journal(machine, machine.requireEntry().running(vm.identity()).diskKept(true));
        machine.check();
        run(machine, vm, spec.adoption());
      }
      if (saved && memory) {
        bench.failPoints().reach(Point.WAKE_AFTER_ADOPT);
        machine.check();
        journal(machine, machine.requireEntry().in(State.RUNNING).diskKept(false));
      } else {
        boot(machine, spec.adoption(), saved);
      }
    } catch (Exception e) {
      backToSleep(machine);
      throw Failures.of(e, "Waking the sandbox failed", machine);
    }
    watch.over(machine);
    bench.failPoints().reach(Point.WAKE_BEFORE_CLEANUP);
    removeSaved(machine);
  }

  private void run(Machine machine, Vm vm, Guest.Adoption adoption) {
    vm.resume();
    bench.failPoints().reach(Point.WAKE_AFTER_RESUME);
    connect(machine, vm, adoption);
  }

  /// @param running whether the guest runs with its memory, in which there may be what its disk
  ///   doesn't have yet
  private void boot(Machine machine, Guest.Adoption adoption, boolean running) {
    if (running) {
      sync(machine);
      machine.dropVm();
    } else {
      Saved.verify(machine.saved(), machine.disk(), bench.vmm().snapshotFormat());
    }
    VmEntry.Origin own = reboot.boot(machine, adoption);
    run(machine, machine.requireVm(), adoption);
    bench.failPoints().reach(Point.WAKE_AFTER_ADOPT);
    machine.check();
    journal(
        machine,
        machine
            .requireEntry()
            .in(State.RUNNING)
            .diskKept(false)
            .bootedAs(own, bench.vmm().snapshotFormat()));
  }

  /// Starts the VM and meanwhile checks what it starts from and keeps a copy of the disk: a guest
  /// that ran but didn't answer has changed the other one, which then no longer goes with the saved
  /// memory.
  private Vm restoreSaved(Machine machine, VmEntry entry) {
    Path saved = machine.saved();
    if (!Files.isDirectory(saved)) {
      throw Problem.of(ErrorCode.SNAPSHOT_DAMAGED, "The sandbox's saved state is gone")
          .because(saved + " doesn't exist")
          .toException();
    }
    Folders.remove(Saved.disk(saved));
    CompletableFuture<Optional<RuntimeException>> aside =
        CompletableFuture.supplyAsync(() -> keepDisk(machine), ASIDE);
    Optional<RuntimeException> refused = Optional.empty();
    try {
      VmSpec spec = Launches.spec(bench, machine, entry);
      machine.vm(bench.vmm().restore(spec, Saved.image(saved, snapshots.memory(entry.origin()))));
    } catch (RuntimeException e) {
      refused = Optional.of(e);
    }
    // What is damaged explains why it can't be restored, so it comes first.
    Optional<RuntimeException> damaged = aside.join();
    if (damaged.isPresent()) {
      throw damaged.get();
    }
    if (refused.isPresent()) {
      throw refused.get();
    }
    return machine.requireVm();
  }

  private Optional<RuntimeException> keepDisk(Machine machine) {
    try {
      Saved.verify(machine.saved(), machine.disk(), bench.vmm().snapshotFormat());
      bench.disks().copy(machine.disk(), Saved.disk(machine.saved()));
      return Optional.empty();
    } catch (RuntimeException e) {
      return Optional.of(e);
    }
  }

  private void backToSleep(Machine machine) {
    try {
      bench.failPoints().reach(Point.BACKGROUND);
      machine.dropVm();
      bench.admission().release(machine);
      restoreDisk(machine, machine.requireEntry());
      machine.sweepOwn(machine.requireEntry().origin());
      bench.journal().writeForced(machine.requireEntry().in(State.SUSPENDED).withoutVm());
    } catch (RuntimeException e) {
      log.error("The failed wake of {} was not rolled back", machine.id(), e);
    }
    machine.entry(machine.requireEntry().in(State.SUSPENDED).withoutVm());
  }

  /// Brings the disk back to where it was saved, after a wake that came to nothing.
  static void restoreDisk(Machine machine, VmEntry entry) {
    Path kept = Saved.disk(machine.saved());
    if (entry.diskKept() && Files.exists(kept)) {
      Folders.force(kept);
      Folders.conceal(kept);
      Folders.publish(kept, machine.disk());
    } else {
      Folders.remove(kept);
    }
  }

  private static void removeSaved(Machine machine) {
    try {
      Folders.remove(machine.saved());
      machine.sweepOwn(machine.requireEntry().origin());
    } catch (RuntimeException e) {
      log.warn("The used saved state of {} was not removed: {}", machine.id(), e.getMessage());
    }
  }
}
