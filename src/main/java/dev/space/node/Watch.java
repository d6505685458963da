package dev.space.node;

import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.guest.GuestLink;
import dev.space.core.node.NodeRuntime.ExitListener;
import dev.space.core.vm.Vm;
import dev.space.core.vm.VmExit;
import dev.space.node.FailPoints.Point;
import dev.space.node.VmEntry.State;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Watches over guests: tells of those that end by themselves, and gets lost links back.
final class Watch {

  private static final Logger log = LoggerFactory.getLogger(Watch.class);
  private static final long RETRY_NANOS = 20_000_000;

  private final Workbench bench;
  private volatile ExitListener listener = (id, exit) -> log.info("{} ended: {}", id, exit);
  private volatile boolean closing;

  Watch(Workbench bench) {
    this.bench = bench;
  }

  void listener(ExitListener next) {
    listener = next;
  }

  /// From now on nothing that happens is anything's end.
  void close() {
    closing = true;
  }

  /// Watches the VM and the link that a machine has now, until it has others.
  void over(Machine machine) {
    machine
        .vm()
        .ifPresent(
            vm -> {
              machine.link().ifPresent(link -> over(machine, vm, link));
              vm.exit()
                  .thenAccept(exit -> Thread.ofVirtual().start(() -> ended(machine, vm, exit)));
            });
  }

  /// Watches the link a machine has now.
  void overLink(Machine machine) {
    machine.vm().ifPresent(vm -> machine.link().ifPresent(link -> over(machine, vm, link)));
  }

  private void over(Machine machine, Vm vm, GuestLink link) {
    link.closed().whenComplete((_, _) -> Thread.ofVirtual().start(() -> relink(machine, vm, link)));
  }

  private boolean has(Machine machine, Vm vm) {
    return !closing && !machine.cancelled().isDone() && machine.vm().filter(vm::equals).isPresent();
  }

  private void ended(Machine machine, Vm vm, VmExit exit) {
    if (!has(machine, vm)) {
      return;
    }
    machine.lane().lock();
    try {
      if (has(machine, vm)) {
        over(machine, exit);
      }
    } catch (RuntimeException e) {
      log.error("The end of {} could not be recorded", machine.id(), e);
    } finally {
      machine.lane().unlock();
    }
  }

  private void over(Machine machine, VmExit exit) {
    bench.failPoints().reach(Point.BACKGROUND);
    Optional<String> owner = machine.requireEntry().owner();
    VmEntry entry = machine.requireEntry().in(State.ENDED).withoutVm();
    machine.dropVm();
    if (owner.isPresent()) {
      bench.journal().write(entry);
    } else {
      Folders.remove(machine.directory());
    }
    machine.entry(entry);
    bench.admission().release(machine);
    log.info("The guest of {} ended: {} {}", machine.id(), exit.kind(), exit.detail());
    owner.ifPresent(id -> listener.exited(id, exit));
  }

  private void relink(Machine machine, Vm vm, GuestLink lost) {
    if (!has(machine, vm) || !isLost(machine, lost)) {
      return;
    }
    machine.lane().lock();
    try {
      if (has(machine, vm) && isLost(machine, lost) && !vm.exit().isDone()) {
        log.warn("The link to the guest of {} is lost", machine.id());
        relink(machine, vm);
      }
    } catch (RuntimeException e) {
      log.error("The link to the guest of {} did not come back", machine.id(), e);
    } finally {
      machine.lane().unlock();
    }
  }

  /// Adopts a running guest over the link it has, beside the caller: a guest takes milliseconds to
  /// answer, and whoever wants it meanwhile waits. The caller has the lane and has journaled the
  /// generation.
  void rejoin(Machine machine, GuestLink link, Guest.Adoption adoption) {
    machine.adoption(adoption);
    Machine.Joining joining = machine.join(link, machine.requireEntry().generation());
    Thread.ofVirtual().name("join-" + machine.id()).start(() -> finish(machine, joining, adoption));
  }

  private void finish(Machine machine, Machine.Joining joining, Guest.Adoption adoption) {
    try {
      bench.failPoints().reach(Point.BACKGROUND);
      joining.link().adopt(joining.generation(), adoption, bench.settings().linkDeadline());
      if (machine.joined(joining)) {
        overLink(machine);
      }
    } catch (RuntimeException e) {
      if (machine.isJoining(joining)) {
        log.info("The link of {} did not carry its adoption: {}", machine.id(), e.getMessage());
        replace(machine, joining);
      }
    }
  }

  private void replace(Machine machine, Machine.Joining joining) {
    machine.lane().lock();
    try {
      Optional<Vm> vm = machine.vm().filter(now -> has(machine, now) && !now.exit().isDone());
      if (vm.isPresent() && machine.isJoining(joining)) {
        relink(machine, vm.get());
      }
    } catch (RuntimeException e) {
      log.error("The link to the guest of {} did not come back", machine.id(), e);
    } finally {
      machine.lane().unlock();
    }
  }

  private static boolean isLost(Machine machine, GuestLink lost) {
    return machine.link().filter(lost::equals).isPresent();
  }

  private void relink(Machine machine, Vm vm) {
    bench.failPoints().reach(Point.BACKGROUND);
    machine.dropLink();
    State state = machine.requireEntry().state();
    if (state == State.WARM) {
      over(machine, new VmExit(VmExit.Kind.VMM_DIED, "its link was lost"));
      return;
    }
    Optional<Guest.Adoption> adoption = machine.adoption();
    if (state != State.RUNNING || adoption.isEmpty()) {
      return;
    }
    long end = System.nanoTime() + bench.settings().linkDeadline().toNanos();
    while (true) {
      try {
        link(machine, vm, same(adoption.get()), end);
        return;
      } catch (SpaceException e) {
        if (vm.exit().isDone()) {
          return;
        }
        if (System.nanoTime() >= end) {
          String why = "the link to its guest was lost and did not come back: " + e.getMessage();
          over(machine, new VmExit(VmExit.Kind.VMM_DIED, why));
          return;
        }
        LockSupport.parkNanos(RETRY_NANOS);
      }
    }
  }

  private void link(Machine machine, Vm vm, Guest.Adoption adoption, long end) {
    VmEntry entry = machine.requireEntry().nextGeneration();
    bench.journal().write(entry);
    machine.entry(entry);
    machine.link(
        bench
            .connector()
            .connect(
                vm,
                entry.generation(),
                adoption,
                java.time.Duration.ofNanos(Math.max(1, end - System.nanoTime()))));
    overLink(machine);
  }

  /// The same adoption for a guest that is no copy.
  static Guest.Adoption same(Guest.Adoption adoption) {
    return new Guest.Adoption(
        false,
        adoption.sandboxId(),
        adoption.hostname(),
        adoption.env(),
        adoption.defaultUser(),
        adoption.defaultWorkdir());
  }
}
