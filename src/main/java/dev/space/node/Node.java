package dev.space.node;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.guest.GuestConnector;
import dev.space.core.node.Capacity;
import dev.space.core.node.LaunchSpec;
import dev.space.core.node.NodeRuntime;
import dev.space.core.node.TemplateImages;
import dev.space.core.node.WritableDisks;
import dev.space.core.template.Resources;
import dev.space.core.vm.Isolation;
import dev.space.core.vm.Vm;
import dev.space.core.vm.VmStats;
import dev.space.core.vm.Vmm;
import dev.space.node.FailPoints.Point;
import dev.space.node.VmEntry.Origin;
import dev.space.node.VmEntry.State;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The VMs of this host. Everything it is about to own stands in a journal entry first, so that
/// whatever instruction the daemon dies at, [#recover] of the next one finds all there is.
public final class Node implements NodeRuntime, WarmPools {

  private static final Logger log = LoggerFactory.getLogger(Node.class);

  private final Workbench bench;
  private final Watch watch;
  private final Bases bases;
  private final Snapshots snapshots;
  private final Launches launches;
  private final Sleep sleep;
  private final Pools pools;
  private final Map<String, Machine> sandboxes = new ConcurrentHashMap<>();

  public Node(
      NodeSettings settings,
      Vmm vmm,
      GuestConnector connector,
      TemplateImages images,
      WritableDisks disks,
      FailPoints failPoints) {
    Folders folders = new Folders(settings.dataDir());
    this.bench =
        new Workbench(
            settings,
            folders,
            new Journal(folders, failPoints),
            vmm,
            connector,
            images,
            disks,
            new Admission(settings),
            failPoints);
    this.watch = new Watch(bench);
    this.bases = new Bases(bench);
    this.snapshots = new Snapshots(bench, watch);
    this.launches = new Launches(bench, bases, snapshots, watch);
    this.sleep = new Sleep(bench, snapshots, watch);
    this.pools = new Pools(bench, bases, launches);
    bench.admission().onShortage(pools::evict);
  }

  @Override
  public String name() {
    return bench.settings().name();
  }

  @Override
  public Isolation isolation() {
    return bench.vmm().isolation();
  }

  @Override
  public Capacity capacity() {
    Admission admission = bench.admission();
    return new Capacity(
        bench.settings().vmsMax(),
        admission.vms(),
        admission.memoryMax(),
        admission.memory(),
        admission.diskTotal(),
        admission.diskFree(),
        pools.idle());
  }

  @Override
  public void create(LaunchSpec spec, Progress progress) {
    if (spec.source() instanceof LaunchSpec.Source.Template(String digest)) {
      Optional<Machine> warm = pools.claim(digest, spec.resources());
      if (warm.isPresent() && claim(warm.get(), spec)) {
        return;
      }
    }
    Machine machine = new Machine(spec.sandboxId(), bench.folders().vm(spec.sandboxId()));
    register(spec.sandboxId(), machine);
    machine.lane().lock();
    try {
      launches.restore(machine, spec, progress);
    } catch (SpaceException e) {
      sandboxes.remove(spec.sandboxId(), machine);
      throw e;
    } finally {
      machine.lane().unlock();
    }
  }

  /// A warm VM that turns out to be no good costs the sandbox nothing but time.
  private boolean claim(Machine machine, LaunchSpec spec) {
    register(spec.sandboxId(), machine);
    machine.lane().lock();
    try {
      launches.claim(machine, spec);
      return true;
    } catch (SpaceException e) {
      sandboxes.remove(spec.sandboxId(), machine);
      if (machine.cancelled().isDone()) {
        throw e;
      }
      log.warn("Warm VM {} could not be claimed: {}", machine.id(), e.getMessage());
      return false;
    } finally {
      machine.lane().unlock();
    }
  }

  private void register(String sandboxId, Machine machine) {
    if (sandboxes.putIfAbsent(sandboxId, machine) != null) {
      throw Problem.of(ErrorCode.ALREADY_EXISTS, "Sandbox " + sandboxId + " exists on this node")
          .toException();
    }
  }

  @Override
  public void pause(String sandboxId) {
    inLane(sandboxId, sleep::pause);
  }

  @Override
  public void resume(String sandboxId, LaunchSpec spec) {
    inLane(sandboxId, machine -> sleep.resume(machine, Watch.same(spec.adoption())));
  }

  @Override
  public void suspend(String sandboxId, boolean memory) {
    inLane(sandboxId, machine -> sleep.suspend(machine, memory));
  }

  @Override
  public void wake(String sandboxId, LaunchSpec spec, boolean memory) {
    inLane(sandboxId, machine -> sleep.wake(machine, same(spec), memory));
  }

  private static LaunchSpec same(LaunchSpec spec) {
    return new LaunchSpec(
        spec.sandboxId(), spec.source(), spec.resources(), Watch.same(spec.adoption()));
  }

  @Override
  public long snapshot(String sandboxId, String snapshotId) {
    long[] bytes = new long[1];
    inLane(sandboxId, machine -> bytes[0] = snapshots.take(machine, snapshotId));
    return bytes[0];
  }

  @Override
  public void deleteSnapshot(String snapshotId) {
    snapshots.delete(snapshotId, origins(Origin.Kind.SNAPSHOT));
  }

  private Set<String> origins(Origin.Kind kind) {
    Set<String> names = new HashSet<>();
    for (Machine machine : sandboxes.values()) {
      machine
          .entry()
          .filter(entry -> entry.state() != State.ENDED && entry.origin().kind() == kind)
          .ifPresent(entry -> names.add(entry.origin().name()));
    }
    return names;
  }

  @Override
  public void delete(String sandboxId) {
    Machine machine = sandboxes.get(sandboxId);
    if (machine == null) {
      return;
    }
    machine.cancel();
    machine.lane().lock();
    try {
      if (machine.entry().isPresent() && Journal.exists(machine.directory())) {
        bench.journal().write(machine.requireEntry().in(State.DELETING));
        bench.failPoints().reach(Point.DELETE_AFTER_JOURNAL);
      }
      machine.dropVm();
      bench.failPoints().reach(Point.DELETE_AFTER_KILL);
      Folders.remove(machine.saved());
      bench.failPoints().reach(Point.DELETE_HALF_REMOVED);
      Folders.remove(machine.directory());
      bench.admission().release(machine);
      sandboxes.remove(sandboxId, machine);
    } finally {
      machine.lane().unlock();
    }
  }

  @Override
  public Guest guest(String sandboxId) {
    return machine(sandboxId).awaitLink(bench.settings().linkDeadline());
  }

  @Override
  public VmStats stats(String sandboxId) {
    return machine(sandboxId)
        .vm()
        .map(Vm::stats)
        .orElseThrow(
            () ->
                Problem.of(ErrorCode.ILLEGAL_STATE, "Sandbox " + sandboxId + " has no VM now")
                    .toException());
  }

  private void inLane(String sandboxId, Consumer<Machine> verb) {
    Machine machine = machine(sandboxId);
    machine.lane().lock();
    try {
      machine.check();
      verb.accept(machine);
    } finally {
      machine.lane().unlock();
    }
  }

  private Machine machine(String sandboxId) {
    Machine machine = sandboxes.get(sandboxId);
    if (machine == null) {
      throw Problem.of(ErrorCode.SANDBOX_NOT_FOUND, "This node has no sandbox " + sandboxId)
          .toException();
    }
    return machine;
  }

  @Override
  public Recovered recover(Set<LaunchSpec> known) {
    return new Recovery(bench, snapshots, watch, sandboxes).recover(known);
  }

  @Override
  public void prepare(String templateDigest, Progress progress) {
    bases.get(
        templateDigest,
        bench.images().defaults(templateDigest).resources(),
        progress,
        new CompletableFuture<>());
  }

  @Override
  public void deleteTemplate(String templateDigest) {
    boolean used =
        sandboxes.values().stream()
            .flatMap(machine -> machine.entry().stream())
            .anyMatch(entry -> entry.origin().template().equals(templateDigest));
    if (used || snapshots.needs(templateDigest)) {
      throw Problem.of(ErrorCode.CONFLICT, "The template is in use")
          .because("a sandbox or a snapshot needs it")
          .remedy("Delete those first.")
          .toException();
    }
    pools.drain(templateDigest);
    bases.remove(templateDigest);
    bench.images().remove(templateDigest);
  }

  @Override
  public void target(String templateDigest, Resources resources, int count) {
    pools.target(templateDigest, resources, count);
  }

  @Override
  public void onExit(ExitListener listener) {
    watch.listener(listener);
  }

  @Override
  public void close() {
    watch.close();
    pools.close();
    sandboxes.values().forEach(Machine::letGo);
  }
}
