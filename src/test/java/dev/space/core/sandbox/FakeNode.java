package dev.space.core.sandbox;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.node.Capacity;
import dev.space.core.node.LaunchSpec;
import dev.space.core.node.NodeRuntime;
import dev.space.core.vm.Isolation;
import dev.space.core.vm.VmExit;
import dev.space.core.vm.VmStats;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.function.Function;

/// A node without VMs, over a [FakeHost]. Tests make calls wait, fail, or die with the daemon.
final class FakeNode implements NodeRuntime {

  /// What a test does to a call, such as `create`, before its effect; a problem makes it fail.
  interface Fault {
    Optional<Problem> before(String verb, String sandboxId) throws InterruptedException;
  }

  private final FakeHost host;
  private final Set<String> inFlight = new HashSet<>();
  private final Map<String, Integer> deletes = new HashMap<>();
  private final Map<String, CountDownLatch> gates = new ConcurrentHashMap<>();
  private final Map<String, CountDownLatch> reached = new ConcurrentHashMap<>();
  private final Map<String, Problem> failures = new ConcurrentHashMap<>();
  final List<String> calls = Collections.synchronizedList(new ArrayList<>());
  final Map<String, LaunchSpec> specs = new ConcurrentHashMap<>();
  private volatile Fault fault = (verb, id) -> Optional.empty();
  private volatile boolean crashed;
  private volatile ExitListener exits = (id, exit) -> {};

  FakeNode(FakeHost host) {
    this.host = host;
  }

  void faults(Fault fault) {
    this.fault = fault;
  }

  /// Makes the next calls of a verb wait until [#open].
  void hold(String verb) {
    reached.put(verb, new CountDownLatch(1));
    gates.put(verb, new CountDownLatch(1));
  }

  void open(String verb) {
    CountDownLatch gate = gates.remove(verb);
    if (gate != null) {
      gate.countDown();
    }
  }

  /// Waits until a call is held.
  void awaitHeld(String verb) throws InterruptedException {
    CountDownLatch latch = reached.get(verb);
    if (latch != null) {
      latch.await();
    }
  }

  void fail(String verb, ErrorCode code) {
    failures.put(verb, Problem.of(code, "the fake node fails " + verb));
  }

  void mend(String verb) {
    failures.remove(verb);
  }

  /// From now on nothing that this daemon's node does has an effect.
  void crash() {
    synchronized (host.lock) {
      crashed = true;
    }
    gates.values().forEach(CountDownLatch::countDown);
  }

  /// The guest of a sandbox ends by itself.
  void die(String id, VmExit.Kind kind) {
    synchronized (host.lock) {
      if (crashed || host.vms.remove(id) == null) {
        return;
      }
    }
    exits.exited(id, new VmExit(kind, "it was told to"));
  }

  private <T> T verb(String verb, String id, Function<String, T> effect) {
    calls.add(verb + " " + id);
    int deletesBefore;
    synchronized (host.lock) {
      alive();
      if (!inFlight.add(id)) {
        host.violations.add("two calls at once for " + id + ": " + verb);
      }
      deletesBefore = deletes.getOrDefault(id, 0);
    }
    try {
      CountDownLatch gate = gates.get(verb);
      if (gate != null) {
        CountDownLatch latch = reached.get(verb);
        if (latch != null) {
          latch.countDown();
        }
        gate.await();
      }
      Optional<Problem> problem =
          Optional.ofNullable(failures.get(verb)).or(() -> before(verb, id));
      synchronized (host.lock) {
        alive();
        if (deletes.getOrDefault(id, 0) != deletesBefore) {
          throw Problem.of(ErrorCode.CANCELLED, id + " was deleted meanwhile").toException();
        }
        if (problem.isPresent()) {
          throw problem.get().toException();
        }
        return effect.apply(id);
      }
    } catch (InterruptedException e) {
      throw Problem.of(ErrorCode.CANCELLED, "interrupted").toException(e);
    } finally {
      synchronized (host.lock) {
        inFlight.remove(id);
      }
    }
  }

  private Optional<Problem> before(String verb, String id) {
    try {
      return fault.before(verb, id);
    } catch (InterruptedException e) {
      return Optional.of(Problem.of(ErrorCode.CANCELLED, "interrupted"));
    }
  }

  private void alive() {
    if (crashed) {
      throw Problem.of(ErrorCode.INTERNAL, "the daemon is dead").toException();
    }
  }

  private static SpaceException refuse(String what) {
    return Problem.of(ErrorCode.ILLEGAL_STATE, what).toException();
  }

  @Override
  public String name() {
    return "here";
  }

  @Override
  public Isolation isolation() {
    return Isolation.SIMULATED;
  }

  @Override
  public Capacity capacity() {
    return new Capacity(100, 0, 1, 0, 1, 1, 0);
  }

  @Override
  public void create(LaunchSpec spec, Progress progress) {
    progress.report("making a disk");
    specs.put(spec.sandboxId(), spec);
    synchronized (host.lock) {
      alive();
      if (spec.source() instanceof LaunchSpec.Source.Snapshot(String snapshotId)) {
        if (!host.snapshots.contains(snapshotId)) {
          throw Problem.of(ErrorCode.SNAPSHOT_NOT_FOUND, "no " + snapshotId).toException();
        }
        host.maps.put(spec.sandboxId(), snapshotId);
      }
      host.held.add(spec.sandboxId());
    }
    try {
      verb(
          "create",
          spec.sandboxId(),
          id -> {
            host.held.add(id);
            return host.vms.put(id, FakeHost.VmState.RUNNING);
          });
    } catch (SpaceException e) {
      synchronized (host.lock) {
        if (!crashed) {
          host.clear(spec.sandboxId());
        }
      }
      throw e;
    }
  }

  private void move(String verb, String id, FakeHost.VmState from, FakeHost.VmState to) {
    verb(
        verb,
        id,
        key -> {
          if (host.vms.get(key) != from) {
            throw refuse(verb + " of " + host.vms.get(key));
          }
          return host.vms.put(key, to);
        });
  }

  @Override
  public void pause(String sandboxId) {
    move("pause", sandboxId, FakeHost.VmState.RUNNING, FakeHost.VmState.PAUSED);
  }

  @Override
  public void resume(String sandboxId, LaunchSpec spec) {
    move("resume", sandboxId, FakeHost.VmState.PAUSED, FakeHost.VmState.RUNNING);
  }

  @Override
  public void suspend(String sandboxId, boolean memory) {
    verb(
        "suspend",
        sandboxId,
        id -> {
          if (host.vms.remove(id) == null) {
            throw refuse("suspend of nothing");
          }
          return host.saved.add(id);
        });
  }

  @Override
  public void wake(String sandboxId, LaunchSpec spec, boolean memory) {
    verb(
        "wake",
        sandboxId,
        id -> {
          if (!host.saved.remove(id)) {
            throw refuse("wake of nothing");
          }
          return host.vms.put(id, FakeHost.VmState.RUNNING);
        });
  }

  @Override
  public long snapshot(String sandboxId, String snapshotId) {
    return verb(
        "snapshot",
        sandboxId,
        id -> {
          if (!host.vms.containsKey(id)) {
            throw refuse("snapshot of nothing");
          }
          host.snapshots.add(snapshotId);
          return 4096L;
        });
  }

  @Override
  public void deleteSnapshot(String snapshotId) {
    synchronized (host.lock) {
      alive();
      if (host.maps.containsValue(snapshotId)) {
        throw Problem.of(ErrorCode.CONFLICT, snapshotId + " is in use").toException();
      }
      host.snapshots.remove(snapshotId);
    }
  }

  @Override
  public void delete(String sandboxId) {
    calls.add("delete " + sandboxId);
    Optional<Problem> problem =
        Optional.ofNullable(failures.get("delete")).or(() -> before("delete", sandboxId));
    synchronized (host.lock) {
      alive();
      if (problem.isPresent()) {
        throw problem.get().toException();
      }
      deletes.merge(sandboxId, 1, Integer::sum);
      host.clear(sandboxId);
    }
  }

  @Override
  public Guest guest(String sandboxId) {
    synchronized (host.lock) {
      if (host.vms.get(sandboxId) != FakeHost.VmState.RUNNING) {
        throw refuse(sandboxId + " doesn't run");
      }
    }
    return (Guest)
        Proxy.newProxyInstance(
            Guest.class.getClassLoader(),
            new Class<?>[] {Guest.class},
            (proxy, method, args) -> {
              throw new UnsupportedOperationException(method.getName());
            });
  }

  @Override
  public VmStats stats(String sandboxId) {
    return new VmStats(0, 0, 0);
  }

  @Override
  public Recovered recover(Set<LaunchSpec> known) {
    Set<String> ids = new HashSet<>();
    known.forEach(spec -> ids.add(spec.sandboxId()));
    synchronized (host.lock) {
      alive();
      for (String id : Set.copyOf(host.held)) {
        boolean halfMade = !host.vms.containsKey(id) && !host.saved.contains(id);
        if (!ids.contains(id) || halfMade) {
          host.clear(id);
        }
      }
      Set<String> running = new HashSet<>();
      Set<String> paused = new HashSet<>();
      host.vms.forEach(
          (id, state) -> (state == FakeHost.VmState.RUNNING ? running : paused).add(id));
      return new Recovered(running, paused, Set.copyOf(host.saved));
    }
  }

  @Override
  public void prepare(String templateDigest, Progress progress) {}

  @Override
  public void deleteTemplate(String templateDigest) {}

  @Override
  public void onExit(ExitListener listener) {
    exits = listener;
  }

  @Override
  public void close() {}
}
