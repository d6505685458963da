package dev.space.node;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.guest.GuestLink;
import dev.space.core.node.NodeRuntime.Progress;
import dev.space.core.template.Template;
import dev.space.core.vm.MemoryImage;
import dev.space.core.vm.Vm;
import dev.space.core.vm.VmSpec;
import dev.space.node.FailPoints.Point;
import dev.space.node.VmEntry.Origin;
import java.nio.file.Path;
import java.util.Optional;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Boots the guest of a suspended sandbox from its disk. What its memory is right after the boot is
/// kept in the VM directory and the guest restored from it at once: later suspends and snapshots
/// then save what differs from it, as with every other guest.
final class Reboot {

  private static final Logger log = LoggerFactory.getLogger(Reboot.class);

  /// What of a VM directory is the node's; everything else is the driver's.
  private static final Set<String> MINE = Set.of("vm.json", "disk.img", "saved");

  private final Workbench bench;

  Reboot(Workbench bench) {
    this.bench = bench;
  }

  /// The caller has the machine's lane, its entry is `WAKING`, no VM is there. Afterwards there is
  /// one, paused, whose process the journal knows.
  ///
  /// @return what its memory comes from. The journal learns of it when the wake is done: until then
  ///   what was saved is the truth
  Origin boot(Machine machine, Guest.Adoption adoption) {
    VmEntry entry = machine.requireEntry();
    VmSpec spec = Launches.spec(bench, machine, entry);
    Path own = machine.own(Names.fresh("b"));
    Path partial = Folders.partial(own);
    Vm first = bench.vmm().boot(spec);
    machine.vm(first);
    bench.failPoints().reach(Point.REBOOT_BOOTED);
    journal(machine, entry.running(first.identity()).nextGeneration());
    machine.check();
    try (GuestLink link =
        bench
            .connector()
            .connect(
                first,
                machine.requireEntry().generation(),
                adoption,
                bench.settings().bootDeadline())) {
      prepare(machine, link);
    }
    machine.check();
    first.pause();
    Folders.make(partial);
    first.save(Frozen.state(partial), new Vm.MemoryTarget.Full(Frozen.memory(partial)));
    machine.dropVm();
    bench.failPoints().reach(Point.REBOOT_SAVED);
    for (Path path : Folders.children(machine.directory())) {
      String name = path.getFileName().toString();
      if (!MINE.contains(name) && !path.equals(partial) && !isOrigin(machine, entry, path)) {
        Folders.remove(path);
      }
    }
    Folders.publish(partial, own);
    machine.check();
    MemoryImage image = new MemoryImage(Frozen.state(own), Frozen.memory(own), Optional.empty());
    Vm vm = bench.vmm().restore(spec, image);
    machine.vm(vm);
    bench.failPoints().reach(Point.REBOOT_RESTORED);
    journal(machine, machine.requireEntry().running(vm.identity()));
    Folders.remove(Frozen.state(own));
    return new Origin(Origin.Kind.OWN, machine.ownName(own), entry.origin().template());
  }

  private static boolean isOrigin(Machine machine, VmEntry entry, Path path) {
    return entry.origin().kind() == Origin.Kind.OWN
        && entry.origin().name().equals(machine.ownName(path));
  }

  /// A start command that no longer works on this disk is no reason to keep its owner from it.
  private void prepare(Machine machine, GuestLink link) {
    Template.Defaults defaults =
        bench.images().defaults(machine.requireEntry().origin().template());
    try {
      new Preparation(link, defaults, bench.settings().guestDeadline()).run(Progress.NONE);
    } catch (SpaceException e) {
      if (e.code() != ErrorCode.TEMPLATE_BUILD_FAILED
          && e.code() != ErrorCode.COMMAND_NOT_FOUND
          && e.code() != ErrorCode.PERMISSION_DENIED) {
        throw e;
      }
      log.warn("The rebooted {} runs without its start command: {}", machine.id(), e.getMessage());
    }
  }

  private void journal(Machine machine, VmEntry entry) {
    bench.journal().write(entry);
    machine.entry(entry);
  }
}
