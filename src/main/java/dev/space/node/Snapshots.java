package dev.space.node;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.template.Resources;
import dev.space.core.vm.MemoryImage;
import dev.space.core.vm.Vm;
import dev.space.node.FailPoints.Point;
import dev.space.node.VmEntry.Origin;
import dev.space.node.VmEntry.State;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;

/// Snapshots of sandboxes: frozen like base snapshots, and sources like them.
final class Snapshots {

  private static final Pattern ID = Pattern.compile("[A-Za-z0-9_-]{1,64}");

  private final Workbench bench;
  private final Watch watch;

  Snapshots(Workbench bench, Watch watch) {
    this.bench = bench;
    this.watch = watch;
  }

  private Path directory(String id) {
    if (!ID.matcher(id).matches()) {
      throw Problem.of(ErrorCode.SNAPSHOT_NOT_FOUND, "There is no snapshot '" + id + "'")
          .toException();
    }
    return bench.folders().snapshots().resolve(id);
  }

  /// A snapshot to restore from.
  ///
  /// @throws SpaceException SNAPSHOT_NOT_FOUND, SNAPSHOT_DAMAGED
  Frozen require(String id, Resources resources) {
    Path directory = directory(id);
    if (!Files.isDirectory(directory)) {
      throw Problem.of(ErrorCode.SNAPSHOT_NOT_FOUND, "This node has no snapshot '" + id + "'")
          .toException();
    }
    Frozen frozen = Frozen.read(directory, new Origin(Origin.Kind.SNAPSHOT, id, ""));
    frozen.requireFormat(bench.vmm().snapshotFormat());
    if (!frozen.resources().equals(resources)) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "A sandbox has the shape of its snapshot")
          .because("the snapshot's is " + frozen.resources().shape() + ", not " + resources.shape())
          .toException();
    }
    return frozen;
  }

  /// The memory file of what a VM was restored from.
  Path memory(Origin origin) {
    Path parent =
        switch (origin.kind()) {
          case BASE -> bench.folders().bases();
          case SNAPSHOT -> bench.folders().snapshots();
          case OWN -> bench.folders().vms();
        };
    Path memory = Frozen.memory(parent.resolve(origin.name()));
    if (!Files.exists(memory)) {
      throw Problem.of(ErrorCode.SNAPSHOT_DAMAGED, "The memory the sandbox builds upon is gone")
          .because(memory + " doesn't exist")
          .toException();
    }
    return memory;
  }

  /// Freezes a running or paused sandbox, which stays as it was. Its guest stands still while the
  /// changes of its memory and its disk are copied; the whole memory is put together afterwards.
  ///
  /// @return bytes it occupies
  long take(Machine machine, String id) {
    VmEntry before = machine.require("saved", State.RUNNING, State.PAUSED);
    Path target = directory(id);
    if (Files.exists(target)) {
      throw Problem.of(ErrorCode.ALREADY_EXISTS, "Snapshot '" + id + "' exists").toException();
    }
    Path partial = Folders.partial(target);
    Path changes = partial.resolve("changes");
    try {
      bench.admission().requireDisk(bench.disks().occupied(machine.disk()));
      Folders.remove(partial);
      Folders.make(partial);
      freeze(machine, before, partial, changes);
      bench.failPoints().reach(Point.SNAPSHOT_AFTER_RESUME);
      machine.check();
      bench
          .vmm()
          .materialise(
              new MemoryImage(Frozen.state(partial), memory(before.origin()), Optional.of(changes)),
              Frozen.memory(partial));
      Folders.remove(changes);
      Frozen.write(
          partial,
          new Frozen.Record(
              Frozen.VERSION,
              before.origin().template(),
              before.resources(),
              before.format(),
              machine.requireEntry().generation()));
      Frozen.force(partial);
      machine.check();
      bench.failPoints().reach(Point.SNAPSHOT_BEFORE_PUBLISH);
      Folders.publish(partial, target);
      Folders.force(bench.folders().snapshots());
      return bench.disks().occupied(Frozen.memory(target))
          + bench.disks().occupied(Frozen.disk(target))
          + bench.disks().occupied(Frozen.state(target));
    } catch (Exception e) {
      bench.failPoints().reach(Point.BACKGROUND);
      Folders.remove(partial);
      throw Failures.of(e, "Taking the snapshot failed", machine);
    }
  }

  private void freeze(Machine machine, VmEntry before, Path partial, Path changes) {
    Vm vm = machine.requireVm();
    boolean running = before.state() == State.RUNNING;
    // No guest may be frozen with a connection open: its clones would have half of it.
    machine.dropLink();
    try {
      vm.pause();
      bench.failPoints().reach(Point.SNAPSHOT_AFTER_STOP);
      vm.save(Frozen.state(partial), new Vm.MemoryTarget.Changes(changes));
      bench.disks().copy(machine.disk(), Frozen.disk(partial));
      bench.failPoints().reach(Point.SNAPSHOT_AFTER_SAVE);
    } catch (RuntimeException e) {
      if (running && !vm.exit().isDone()) {
        thaw(machine, vm);
      }
      throw e;
    }
    if (running) {
      thaw(machine, vm);
    }
  }

  private void thaw(Machine machine, Vm vm) {
    vm.resume();
    VmEntry entry = machine.requireEntry().nextGeneration();
    bench.journal().write(entry);
    machine.entry(entry);
    try {
      machine
          .adoption()
          .ifPresent(
              adoption ->
                  machine.link(
                      bench
                          .connector()
                          .connect(
                              vm,
                              entry.generation(),
                              Watch.same(adoption),
                              bench.settings().guestDeadline())));
      watch.overLink(machine);
    } catch (SpaceException e) {
      // A guest that runs but can't be reached is no better than a dead one.
      if (!machine.cancelled().isDone()) {
        vm.kill();
      }
      throw e;
    }
  }

  /// @param used names of the snapshots that VMs build upon
  void delete(String id, Set<String> used) {
    Path directory = directory(id);
    if (used.contains(id)) {
      throw Problem.of(ErrorCode.CONFLICT, "Snapshot '" + id + "' is in use")
          .because("a sandbox that was made from it builds upon its memory")
          .remedy("Delete the sandboxes that were made from it first.")
          .toException();
    }
    if (Files.exists(directory)) {
      Path gone = Folders.partial(directory);
      Folders.remove(gone);
      Folders.publish(directory, gone);
      Folders.remove(gone);
    }
  }

  /// Digests of the templates that snapshots need.
  boolean needs(String digest) {
    for (Path directory : Folders.children(bench.folders().snapshots())) {
      if (directory.getFileName().toString().endsWith(Folders.PARTIAL)) {
        continue;
      }
      Frozen frozen =
          Frozen.read(
              directory, new Origin(Origin.Kind.SNAPSHOT, directory.getFileName().toString(), ""));
      if (frozen.origin().template().equals(digest)) {
        return true;
      }
    }
    return false;
  }
}
