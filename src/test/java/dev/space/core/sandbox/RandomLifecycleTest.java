package dev.space.core.sandbox;

import static dev.space.core.sandbox.Daemon.BASE;
import static dev.space.core.sandbox.Daemon.ME;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.operation.IdempotencyKey;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationKind;
import dev.space.core.operation.OperationState;
import dev.space.core.snapshot.Snapshot;
import dev.space.core.store.Store;
import dev.space.core.vm.VmExit;
import dev.space.store.SqliteStore;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Hundreds of calls from several threads, with failures, delays and crashes at any transaction and
/// any call to the node. `-Dspace.random.seed=…` repeats a run's choices,
/// `-Dspace.random.seconds=…` makes it longer.
@Tag("slow")
class RandomLifecycleTest {

  private static final int CLIENTS = 6;
  private static final int CALLS = 40;

  @TempDir private Path directory;
  private final FakeHost host = new FakeHost();
  private final List<String> ids = new CopyOnWriteArrayList<>();
  private final List<String> answered = new CopyOnWriteArrayList<>();
  private final Set<String> deleteAnswered = ConcurrentHashMap.newKeySet();
  private final Map<String, Operation> terminal = new ConcurrentHashMap<>();
  private final Map<String, String> keys = new ConcurrentHashMap<>();
  private final AtomicInteger keyNumbers = new AtomicInteger();

  @Test
  @DisplayName("behaviours 21, 24, 26, 27: invariants hold through failures and crashes")
  void invariants_hold() throws Exception {
    long seed = Long.getLong("space.random.seed", System.nanoTime());
    long end =
        System.nanoTime() + Duration.ofSeconds(Long.getLong("space.random.seconds", 10)).toNanos();
    System.err.println("random lifecycle: -Dspace.random.seed=" + seed);
    Random random = new Random(seed);
    int rounds = 0;
    while (System.nanoTime() < end) {
      round(random);
      check();
      rounds++;
    }
    System.err.printf(
        "random lifecycle: %d rounds, %d sandboxes, %d operations%n",
        rounds, ids.size(), answered.size());
    assertThat(answered).hasSizeGreaterThan(50);
  }

  private void round(Random random) throws InterruptedException {
    CrashingStore store =
        new CrashingStore(
            SqliteStore.open(directory), 5 + random.nextInt(400), random.nextBoolean());
    Daemon daemon = new Daemon(store, host, InstantSource.system());
    store.onCrash(daemon::crash);
    long faults = random.nextLong();
    double crashAtCall = random.nextBoolean() ? 0.005 : 0;
    Random dice = new Random(faults);
    daemon.node.faults(
        (verb, id) -> {
          double chance;
          long micros;
          synchronized (dice) {
            chance = dice.nextDouble();
            micros = dice.nextInt(3000);
          }
          new CountDownLatch(1).await(micros, TimeUnit.MICROSECONDS);
          if (chance < crashAtCall) {
            store.die();
          }
          return chance > (verb.equals("delete") ? 0.95 : 0.88)
              ? Optional.of(Problem.of(ErrorCode.VMM_FAILED, verb + " fails by chance"))
              : Optional.empty();
        });
    try {
      daemon.start();
    } catch (SpaceException e) {
      assertThat(store.isDead()).as("%s", e).isTrue();
    }
    List<Thread> clients = new ArrayList<>();
    for (int i = 0; i < CLIENTS; i++) {
      Random own = new Random(random.nextLong());
      clients.add(Thread.ofVirtual().start(() -> client(daemon, store, own)));
    }
    for (Thread client : clients) {
      client.join();
    }
    store.close();
  }

  private void client(Daemon daemon, CrashingStore store, Random random) {
    for (int i = 0; i < CALLS && !store.isDead(); i++) {
      try {
        Optional<Operation> made = call(daemon, random);
        made.ifPresent(operation -> answered.add(operation.id()));
        if (made.isPresent() && random.nextInt(3) == 0) {
          Operation seen =
              daemon.operations.get(ME, made.get().id(), Duration.ofMillis(random.nextInt(50)));
          if (seen.state().isTerminal()) {
            terminal.put(seen.id(), seen);
          }
        }
      } catch (SpaceException e) {
        boolean expected =
            store.isDead()
                || e.code() == ErrorCode.SANDBOX_NOT_FOUND
                || e.code() == ErrorCode.ILLEGAL_STATE
                || e.code() == ErrorCode.VMM_FAILED
                || e.code() == ErrorCode.CANCELLED
                || e.code() == ErrorCode.SANDBOX_DIED
                || e.code() == ErrorCode.SHUTTING_DOWN;
        if (!expected) {
          host.violations.add("unexpected: " + e.problem());
        }
      }
    }
  }

  private Optional<Operation> call(Daemon daemon, Random random) {
    SandboxService service = daemon.sandboxes;
    int what = random.nextInt(100);
    if (ids.isEmpty() || what < 25) {
      return Optional.of(create(daemon, random));
    }
    String id = ids.get(ids.size() - 1 - random.nextInt(Math.min(ids.size(), 12)));
    if (what < 35) {
      return Optional.of(service.pause(ME, id, Optional.empty()));
    } else if (what < 50) {
      return Optional.of(service.suspend(ME, id, Optional.empty()));
    } else if (what < 65) {
      return Optional.of(service.wake(ME, id, Optional.empty()));
    } else if (what < 70) {
      return Optional.of(service.snapshot(ME, id, Optional.empty(), Optional.empty()));
    } else if (what < 74) {
      return Optional.of(service.fork(ME, id, 1 + random.nextInt(3), Optional.empty()));
    } else if (what < 86) {
      Operation delete = service.delete(ME, id, Optional.empty());
      deleteAnswered.add(id);
      return Optional.of(delete);
    } else if (what < 90) {
      VmExit.Kind kind = random.nextBoolean() ? VmExit.Kind.STOPPED : VmExit.Kind.PANICKED;
      daemon.node.die(id, kind);
      return Optional.empty();
    } else {
      service.get(ME, id);
      return Optional.empty();
    }
  }

  private Operation create(Daemon daemon, Random random) {
    String key = "key-" + keyNumbers.incrementAndGet();
    Optional<IdempotencyKey> given = Optional.of(new IdempotencyKey(key, "f"));
    Operation operation = daemon.sandboxes.create(ME, CreateSandbox.of(BASE), given);
    keys.put(key, operation.id());
    ids.add(operation.sandboxId().orElseThrow());
    if (random.nextInt(4) == 0) {
      assertThat(daemon.sandboxes.create(ME, CreateSandbox.of(BASE), given).id())
          .isEqualTo(operation.id());
    }
    return operation;
  }

  /// Starts once more without any fault, lets all come to rest, and looks at everything.
  private void check() {
    try (Store store = SqliteStore.open(directory)) {
      Daemon daemon = new Daemon(store, host, InstantSource.system()).start();
      await().atMost(Duration.ofSeconds(20)).until(() -> daemon.sandboxes.busyLanes() == 0);
      List<Sandbox> all =
          store.read(tx -> tx.sandboxes().inStates(EnumSet.allOf(SandboxState.class)));
      List<Operation> open = store.read(tx -> tx.operations().open());
      assertThat(open).as("every operation is terminal").isEmpty();
      assertThat(host.violations).isEmpty();
      answersAreTrue(store);
      ownersAndStates(store, all);
      daemon.close();
    }
  }

  private void answersAreTrue(Store store) {
    for (String id : answered) {
      boolean known = store.<Boolean>read(tx -> tx.operations().find(id).isPresent());
      assertThat(known).as("operation %s was answered and is kept", id).isTrue();
    }
    terminal.forEach(
        (id, seen) ->
            assertThat(store.<Optional<Operation>>read(tx -> tx.operations().find(id)))
                .as("a terminal operation stays as it was")
                .contains(seen));
    keys.forEach(
        (key, id) ->
            assertThat(
                    store.<String>read(
                        tx -> tx.idempotency().find(ME.project(), key).orElseThrow().resultId()))
                .as("a key leads to its first answer")
                .isEqualTo(id));
  }

  private void ownersAndStates(Store store, List<Sandbox> all) {
    Set<String> mayHold = new HashSet<>();
    for (Sandbox s : all) {
      switch (s.state()) {
        case RUNNING -> assertThat(host.vms).containsEntry(s.id(), FakeHost.VmState.RUNNING);
        case PAUSED -> assertThat(host.vms).containsEntry(s.id(), FakeHost.VmState.PAUSED);
        case SUSPENDED -> assertThat(host.saved).contains(s.id());
        case STOPPED, FAILED -> assertThat(host.vms).doesNotContainKey(s.id());
        case DELETED -> {}
        case DELETING, CREATING, PAUSING, RESUMING, SUSPENDING, WAKING ->
            assertThat(s).as("at rest").isNull();
      }
      if (s.state() != SandboxState.DELETED) {
        mayHold.add(s.id());
      }
      if (deleteAnswered.contains(s.id())) {
        assertThat(s.state()).as("a delete that was answered wins").isEqualTo(SandboxState.DELETED);
        Operation delete =
            store
                .<Optional<Operation>>read(
                    tx -> tx.operations().latest(s.id(), OperationKind.DELETE))
                .orElseThrow();
        assertThat(delete.state()).isEqualTo(OperationState.SUCCEEDED);
      }
    }
    assertThat(mayHold).as("nothing is held without an owner").containsAll(host.held);
    Set<String> recorded = new HashSet<>();
    store
        .<List<Snapshot>>read(
            tx -> {
              List<Snapshot> found = new ArrayList<>(tx.snapshots().internal());
              found.addAll(
                  tx.snapshots()
                      .list(ME.project(), Optional.empty(), 1000, Optional.empty())
                      .items());
              return found;
            })
        .forEach(snapshot -> recorded.add(snapshot.id()));
    assertThat(recorded).as("no snapshot without a record").containsAll(host.snapshots);
  }
}
