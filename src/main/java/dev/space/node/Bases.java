package dev.space.node;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.guest.GuestLink;
import dev.space.core.node.NodeRuntime.Progress;
import dev.space.core.template.Resources;
import dev.space.core.template.Template;
import dev.space.core.vm.Vm;
import dev.space.core.vm.VmSpec;
import dev.space.core.vm.Vmm;
import dev.space.node.FailPoints.Point;
import dev.space.node.VmEntry.Origin;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Base snapshots: templates that were booted once and frozen. Each is made when it is first
/// needed, by one maker, however many wait for it.
final class Bases {

  private static final Logger log = LoggerFactory.getLogger(Bases.class);

  private final Workbench bench;
  private final Map<String, Making> making = new ConcurrentHashMap<>();
  private final Map<String, Frozen> known = new ConcurrentHashMap<>();

  /// One base snapshot under way, and who wants to hear of it.
  private static final class Making {
    final CompletableFuture<Frozen> done = new CompletableFuture<>();
    final List<Progress> listeners = new CopyOnWriteArrayList<>();
    final AtomicReference<String> last = new AtomicReference<>("");

    void report(String step) {
      last.set(step);
      listeners.forEach(listener -> listener.report(step));
    }
  }

  Bases(Workbench bench) {
    this.bench = bench;
  }

  static String name(String digest, Resources resources, Vmm vmm) {
    return prefix(digest)
        + resources.shape()
        + "-"
        + vmm.snapshotFormat().replaceAll("[^A-Za-z0-9.]", "_")
        + bootSuffix(vmm);
  }

  private static String prefix(String digest) {
    String hex = digest.substring(digest.indexOf(':') + 1);
    return hex.substring(0, Math.min(12, hex.length())) + "-";
  }

  /// How the names of base snapshots end that were booted with the present kernel and agent.
  static String bootSuffix(Vmm vmm) {
    return "-" + vmm.bootFingerprint();
  }

  /// The base snapshot of a template in a shape, made if need be.
  ///
  /// @param cancelled ends the wait, not the making
  Frozen get(
      String digest, Resources resources, Progress progress, CompletableFuture<Void> cancelled) {
    String name = name(digest, resources, bench.vmm());
    Optional<Frozen> there = find(name, digest);
    if (there.isPresent()) {
      return there.get();
    }
    Making mine = new Making();
    Making current = making.computeIfAbsent(name, _ -> mine);
    current.listeners.add(progress);
    try {
      if (current == mine) {
        Thread.ofVirtual().name("base-" + name).start(() -> make(name, digest, resources, mine));
      } else {
        progress.report(current.last.get());
      }
      CompletableFuture.anyOf(current.done, cancelled).get();
      if (!current.done.isDone()) {
        throw Problem.of(ErrorCode.CANCELLED, "Waiting for the base snapshot was cancelled")
            .toException();
      }
      return current.done.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw Problem.of(ErrorCode.CANCELLED, "Waiting for the base snapshot was cancelled")
          .toException(e);
    } catch (ExecutionException | CompletionException e) {
      if (e.getCause() instanceof SpaceException failure) {
        throw failure.problem().toException(failure);
      }
      if (e.getCause() instanceof Error error) {
        throw error;
      }
      throw Problem.of(ErrorCode.INTERNAL, "Making the base snapshot failed").toException(e);
    } finally {
      current.listeners.remove(progress);
    }
  }

  /// The base snapshot, when it is there.
  Optional<Frozen> find(String digest, Resources resources) {
    return find(name(digest, resources, bench.vmm()), digest);
  }

  private Optional<Frozen> find(String name, String digest) {
    Frozen cached = known.get(name);
    if (cached != null) {
      return Optional.of(cached);
    }
    Path dir = bench.folders().bases().resolve(name);
    if (!Files.exists(dir)) {
      return Optional.empty();
    }
    try {
      Frozen frozen = Frozen.read(dir, new Origin(Origin.Kind.BASE, name, digest));
      frozen.requireTemplate(digest);
      known.put(name, frozen);
      return Optional.of(frozen);
    } catch (SpaceException e) {
      log.warn("Base snapshot {} is not usable and is made again: {}", name, e.getMessage());
      Folders.remove(dir);
      return Optional.empty();
    }
  }

  private void make(String name, String digest, Resources resources, Making making) {
    try {
      Frozen frozen = find(name, digest).orElseGet(() -> boot(name, digest, resources, making));
      known.put(name, frozen);
      this.making.remove(name);
      making.done.complete(frozen);
    } catch (Throwable e) {
      this.making.remove(name);
      making.done.completeExceptionally(e);
    }
  }

  private Frozen boot(String name, String digest, Resources resources, Making making) {
    Template.Defaults defaults = bench.images().defaults(digest);
    Path root = bench.images().root(digest);
    String id = Names.fresh("base");
    Machine machine = new Machine(id, bench.folders().vm(id));
    bench.admission().promise(machine, resources);
    machine.lane().lock();
    try {
      making.report("booting the template once");
      Origin origin = new Origin(Origin.Kind.BASE, name, digest);
      VmEntry entry =
          new VmEntry(
              VmEntry.VERSION,
              id,
              VmEntry.State.BASE,
              Optional.empty(),
              origin,
              resources,
              Optional.empty(),
              1,
              false,
              false,
              bench.vmm().snapshotFormat());
      bench.journal().begin(entry);
      machine.entry(entry);
      bench.disks().makePristine(machine.disk(), resources.diskMib());
      Vm vm =
          bench.vmm().boot(new VmSpec(id, machine.directory(), resources, root, machine.disk()));
      machine.vm(vm);
      bench.failPoints().reach(Point.BASE_BOOTED);
      bench.journal().write(entry.running(vm.identity()));
      Guest.Adoption adoption =
          new Guest.Adoption(
              true, id, "template", defaults.env(), defaults.user(), defaults.workdir());
      try (GuestLink link =
          bench.connector().connect(vm, 1, adoption, bench.settings().bootDeadline())) {
        new Preparation(link, defaults, bench.settings().bootDeadline()).run(making::report);
        link.sync();
      }
      making.report("freezing it");
      return freeze(machine, vm, origin);
    } catch (Exception e) {
      throw Failures.of(e, "Making the base snapshot of " + digest + " failed");
    } finally {
      cleanUp(machine);
    }
  }

  private Frozen freeze(Machine machine, Vm vm, Origin origin) {
    Path target = bench.folders().bases().resolve(origin.name());
    Path partial = Folders.partial(target);
    Folders.remove(partial);
    Folders.make(partial);
    vm.pause();
    vm.save(Frozen.state(partial), new Vm.MemoryTarget.Full(Frozen.memory(partial)));
    bench.failPoints().reach(Point.BASE_SAVED);
    machine.dropVm();
    Folders.publish(machine.disk(), Frozen.disk(partial));
    Frozen.write(
        partial,
        new Frozen.Record(
            Frozen.VERSION,
            origin.template(),
            machine.requireEntry().resources(),
            bench.vmm().snapshotFormat(),
            1));
    Frozen.force(partial);
    bench.failPoints().reach(Point.BASE_BEFORE_PUBLISH);
    Folders.publish(partial, target);
    Folders.force(bench.folders().bases());
    return Frozen.read(target, origin);
  }

  private void cleanUp(Machine machine) {
    try {
      // A crash leaves things as they are; the next daemon finds them by the journal.
      bench.failPoints().reach(Point.BACKGROUND);
      machine.dropVm();
      Folders.remove(machine.directory());
    } catch (SpaceException e) {
      log.warn("Cleaning up after {} failed: {}", machine.id(), e.getMessage());
    } finally {
      bench.admission().release(machine);
      machine.lane().unlock();
    }
  }

  /// Forgets and removes all base snapshots of a template.
  void remove(String digest) {
    String prefix = prefix(digest);
    known.keySet().removeIf(name -> name.startsWith(prefix));
    for (Path dir : Folders.children(bench.folders().bases())) {
      if (dir.getFileName().toString().startsWith(prefix)) {
        Folders.remove(dir);
      }
    }
  }
}
