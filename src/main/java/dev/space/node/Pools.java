package dev.space.node;

import dev.space.core.error.SpaceException;
import dev.space.core.node.NodeRuntime.Progress;
import dev.space.core.template.Resources;
import dev.space.node.FailPoints.Point;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Keeps warm pools filled: one filler per pool, as many at work at a time as settings allow.
final class Pools implements WarmPools {

  private static final Logger log = LoggerFactory.getLogger(Pools.class);
  private static final long BACKOFF_MILLIS = 1_000;
  private static final long BACKOFF_MILLIS_MAX = 60_000;

  /// Making a VM takes a core for some 300 ms; whoever has just claimed one runs a first command in
  /// that time.
  private static final long REFILL_DELAY_MILLIS = 300;

  private record Key(String digest, Resources resources) {}

  private static final class Pool {
    int target;
    boolean filling;
    final Deque<Machine> idle = new ArrayDeque<>();
  }

  private final Workbench bench;
  private final Bases bases;
  private final Launches launches;
  private final Semaphore fillers;
  private final CompletableFuture<Void> closed = new CompletableFuture<>();
  private final Map<Key, Pool> pools = new HashMap<>();

  Pools(Workbench bench, Bases bases, Launches launches) {
    this.bench = bench;
    this.bases = bases;
    this.launches = launches;
    this.fillers = new Semaphore(Math.max(1, bench.settings().poolFillers()));
  }

  @Override
  public void target(String templateDigest, Resources resources, int count) {
    Key key = new Key(templateDigest, resources);
    List<Machine> excess = new ArrayList<>();
    synchronized (pools) {
      Pool pool = pools.computeIfAbsent(key, _ -> new Pool());
      pool.target = count;
      while (pool.idle.size() > count) {
        excess.add(pool.idle.removeLast());
      }
    }
    excess.forEach(this::discard);
    fill(key);
  }

  /// Takes an idle VM for its owner, when there is one.
  Optional<Machine> claim(String digest, Resources resources) {
    Key key = new Key(digest, resources);
    while (true) {
      Machine machine;
      synchronized (pools) {
        Pool pool = pools.get(key);
        machine = pool == null ? null : pool.idle.pollFirst();
      }
      if (machine == null) {
        return Optional.empty();
      }
      fill(key, REFILL_DELAY_MILLIS);
      boolean alive = machine.vm().filter(vm -> !vm.exit().isDone()).isPresent();
      if (machine.claim()) {
        if (alive) {
          return Optional.of(machine);
        }
        end(machine);
      }
    }
  }

  /// Ends one idle VM of any pool, to make room.
  boolean evict() {
    Machine victim = null;
    synchronized (pools) {
      for (Pool pool : pools.values()) {
        if (!pool.idle.isEmpty()) {
          victim = pool.idle.pollLast();
          break;
        }
      }
    }
    if (victim == null) {
      return false;
    }
    discard(victim);
    return true;
  }

  /// Ends all pools of a template.
  void drain(String digest) {
    List<Key> keys;
    synchronized (pools) {
      keys = pools.keySet().stream().filter(key -> key.digest().equals(digest)).toList();
    }
    keys.forEach(key -> target(key.digest(), key.resources(), 0));
  }

  int idle() {
    synchronized (pools) {
      return pools.values().stream().mapToInt(pool -> pool.idle.size()).sum();
    }
  }

  void close() {
    closed.complete(null);
    List<Machine> all = new ArrayList<>();
    synchronized (pools) {
      pools.values().forEach(pool -> all.addAll(pool.idle));
      pools.clear();
    }
    all.forEach(Machine::letGo);
  }

  private void discard(Machine machine) {
    if (machine.claim()) {
      end(machine);
    }
  }

  private void end(Machine machine) {
    machine.lane().lock();
    try {
      launches.discard(machine);
    } finally {
      machine.lane().unlock();
    }
  }

  private void fill(Key key) {
    fill(key, 0);
  }

  private void fill(Key key, long delayMillis) {
    synchronized (pools) {
      Pool pool = pools.get(key);
      if (pool == null || pool.filling || closed.isDone() || pool.idle.size() >= pool.target) {
        return;
      }
      pool.filling = true;
    }
    Thread.ofVirtual().name("warm-" + key.digest()).start(() -> fillUp(key, delayMillis));
  }

  private void fillUp(Key key, long delayMillis) {
    if (delayMillis > 0) {
      pauseFor(delayMillis);
    }
    long backoff = BACKOFF_MILLIS;
    while (wantsMore(key)) {
      try {
        bench.failPoints().reach(Point.BACKGROUND);
        fillers.acquire();
        try {
          add(key);
        } finally {
          fillers.release();
        }
        backoff = BACKOFF_MILLIS;
      } catch (SpaceException e) {
        log.warn("A warm VM of {} could not be made: {}", key.digest(), e.getMessage());
        pauseFor(backoff);
        backoff = Math.min(2 * backoff, BACKOFF_MILLIS_MAX);
      } catch (InterruptedException e) {
        return;
      }
    }
  }

  /// Whether the filler goes on; when not, another may start.
  private boolean wantsMore(Key key) {
    synchronized (pools) {
      Pool pool = pools.get(key);
      if (pool == null || closed.isDone()) {
        return false;
      }
      pool.filling = pool.idle.size() < pool.target;
      return pool.filling;
    }
  }

  private void add(Key key) {
    Frozen frozen = bases.get(key.digest(), key.resources(), Progress.NONE, closed);
    String id = Names.fresh("warm");
    Machine machine = new Machine(id, bench.folders().vm(id));
    machine.lane().lock();
    try {
      launches.warm(machine, frozen);
    } finally {
      machine.lane().unlock();
    }
    synchronized (pools) {
      Pool pool = pools.get(key);
      if (pool != null && pool.idle.size() < pool.target) {
        pool.idle.addLast(machine);
        return;
      }
    }
    if (closed.isDone()) {
      machine.letGo();
    } else {
      discard(machine);
    }
  }

  private void pauseFor(long millis) {
    try {
      closed.copy().get(millis, TimeUnit.MILLISECONDS);
    } catch (java.util.concurrent.TimeoutException _) {
      // Time to try again.
    } catch (InterruptedException | java.util.concurrent.ExecutionException _) {
      Thread.currentThread().interrupt();
    }
  }
}
