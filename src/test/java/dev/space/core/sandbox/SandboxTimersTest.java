package dev.space.core.sandbox;

import static dev.space.core.sandbox.Daemon.BASE;
import static dev.space.core.sandbox.Daemon.ME;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.space.core.ManualClock;
import dev.space.core.Samples;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationKind;
import dev.space.core.store.Store;
import dev.space.store.SqliteStore;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class SandboxTimersTest {

  private static final Duration MINUTE = Duration.ofMinutes(1);

  @TempDir private Path directory;
  private final ManualClock clock = new ManualClock(Samples.NOW);
  private final FakeHost host = new FakeHost();
  private Store store;
  private Daemon daemon;

  @BeforeEach
  void start() {
    store = SqliteStore.open(directory);
    daemon = new Daemon(store, host, clock).start();
  }

  @AfterEach
  void stop() {
    daemon.close();
    store.close();
    assertThat(host.violations).isEmpty();
  }

  private static CreateSandbox request(
      Optional<Duration> timeout, OnTimeout onTimeout, Optional<Duration> idle, boolean autoWake) {
    return new CreateSandbox(
        new CreateSandbox.Source.FromTemplate(BASE),
        Optional.empty(),
        Optional.empty(),
        Optional.empty(),
        Map.of(),
        Map.of(),
        timeout,
        onTimeout,
        idle,
        autoWake);
  }

  private static CreateSandbox expiring(OnTimeout then) {
    return request(Optional.of(MINUTE), then, Optional.empty(), false);
  }

  private void pass(Duration time) {
    clock.advance(time);
    daemon.sandboxes.clockMoved();
  }

  private void becomes(String id, SandboxState state) {
    await().until(() -> daemon.state(id) == state);
  }

  private void isDeleted(String id) {
    await()
        .untilAsserted(
            () ->
                assertThatThrownBy(() -> daemon.state(id))
                    .isInstanceOfSatisfying(
                        SpaceException.class,
                        e -> assertThat(e.code()).isEqualTo(ErrorCode.SANDBOX_NOT_FOUND)));
  }

  private static UpdateSandbox extend(Duration timeout) {
    return new UpdateSandbox(
        Optional.of(timeout),
        Optional.empty(),
        Optional.empty(),
        Optional.empty(),
        Optional.empty());
  }

  /// Shows that a timer did not fire: another one that came later did.
  private void anotherOneFires() {
    String later =
        daemon.running(
            request(Optional.of(Duration.ofSeconds(1)), OnTimeout.DELETE, Optional.empty(), false));
    pass(Duration.ofSeconds(1));
    isDeleted(later);
  }

  @Test
  @DisplayName("behaviour 29: a timeout counts from when the sandbox runs and deletes it")
  void a_timeout_deletes() throws Exception {
    daemon.node.hold("create");
    Operation create = daemon.create(expiring(OnTimeout.DELETE));
    daemon.node.awaitHeld("create");
    pass(MINUTE);
    daemon.node.open("create");
    String id = daemon.succeeded(create).resultIds().getFirst();

    assertThat(daemon.sandboxes.get(ME, id).expiresAt()).contains(clock.instant().plus(MINUTE));
    pass(MINUTE.minusSeconds(2));
    anotherOneFires();
    becomes(id, SandboxState.RUNNING);
    pass(Duration.ofSeconds(1));
    isDeleted(id);
  }

  @Test
  @DisplayName("behaviour 29: extending works while it runs")
  void an_extension_counts_from_now() {
    String id = daemon.running(expiring(OnTimeout.DELETE));
    pass(Duration.ofSeconds(50));
    daemon.sandboxes.update(ME, id, extend(MINUTE));
    pass(Duration.ofSeconds(50));
    anotherOneFires();
    becomes(id, SandboxState.RUNNING);
    daemon.sandboxes.update(ME, id, extend(Duration.ZERO));
    pass(Duration.ofDays(40));
    anotherOneFires();
    becomes(id, SandboxState.RUNNING);
    assertThat(daemon.sandboxes.get(ME, id).expiresAt()).isEmpty();
  }

  @Test
  @DisplayName("behaviour 20: suspension by timeout goes the way of the explicit one")
  void a_timeout_suspends_and_a_wake_gives_the_time_again() {
    String id = daemon.running(expiring(OnTimeout.SUSPEND));
    pass(MINUTE);
    becomes(id, SandboxState.SUSPENDED);
    assertThat(daemon.operations.list(ME, Optional.of(id), 10, Optional.empty()).items())
        .extracting(Operation::kind)
        .contains(OperationKind.SUSPEND);

    daemon.succeeded(daemon.sandboxes.wake(ME, id, Optional.empty()));
    assertThat(daemon.sandboxes.get(ME, id).expiresAt()).contains(clock.instant().plus(MINUTE));
    pass(MINUTE);
    becomes(id, SandboxState.SUSPENDED);
  }

  @Test
  void what_runs_out_while_suspended_is_deleted_or_left() {
    String deleted = daemon.running(expiring(OnTimeout.DELETE));
    String left = daemon.running(expiring(OnTimeout.SUSPEND));
    daemon.succeeded(daemon.sandboxes.suspend(ME, deleted, Optional.empty()));
    daemon.succeeded(daemon.sandboxes.suspend(ME, left, Optional.empty()));
    pass(MINUTE);
    isDeleted(deleted);
    await().until(() -> daemon.sandboxes.get(ME, left).expiresAt().isEmpty());
    assertThat(daemon.state(left)).isEqualTo(SandboxState.SUSPENDED);
  }

  @Test
  void a_suspend_by_timeout_that_fails_is_tried_again() {
    String id =
        daemon.running(
            request(Optional.of(Duration.ofHours(1)), OnTimeout.SUSPEND, Optional.empty(), false));
    daemon.node.fail("suspend", ErrorCode.DISK_FULL);
    pass(Duration.ofHours(1));
    await()
        .until(
            () ->
                daemon
                    .sandboxes
                    .get(ME, id)
                    .expiresAt()
                    .equals(Optional.of(clock.instant().plus(MINUTE))));
    daemon.node.mend("suspend");
    pass(MINUTE);
    becomes(id, SandboxState.SUSPENDED);
  }

  @Test
  void an_idle_sandbox_is_suspended_and_one_in_use_is_not() {
    String id =
        daemon.running(request(Optional.empty(), OnTimeout.SUSPEND, Optional.of(MINUTE), true));
    pass(Duration.ofSeconds(50));
    SandboxService.Use outer = daemon.sandboxes.use(ME, id);
    try (SandboxService.Use inner = daemon.sandboxes.use(ME, id)) {
      assertThat(inner.guest()).isNotNull();
    }
    pass(Duration.ofHours(1));
    anotherOneFires();
    assertThat(daemon.state(id)).isEqualTo(SandboxState.RUNNING);
    outer.close();
    outer.close(); // closing twice counts once
    pass(Duration.ofSeconds(58));
    anotherOneFires();
    assertThat(daemon.state(id)).isEqualTo(SandboxState.RUNNING);
    pass(Duration.ofSeconds(1));
    becomes(id, SandboxState.SUSPENDED);
  }

  @Test
  void a_use_wakes_what_sleeps() {
    String id =
        daemon.running(request(Optional.empty(), OnTimeout.SUSPEND, Optional.of(MINUTE), true));
    for (boolean suspended : new boolean[] {true, false}) {
      daemon.succeeded(
          suspended
              ? daemon.sandboxes.suspend(ME, id, Optional.empty())
              : daemon.sandboxes.pause(ME, id, Optional.empty()));
      try (SandboxService.Use use = daemon.sandboxes.use(ME, id)) {
        assertThat(use.sandbox().state()).isEqualTo(SandboxState.RUNNING);
      }
    }
    daemon.succeeded(daemon.sandboxes.suspend(ME, id, Optional.empty()));
    daemon.node.fail("wake", ErrorCode.CAPACITY);
    assertThatThrownBy(() -> daemon.sandboxes.use(ME, id))
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.CAPACITY));
  }

  @Test
  void a_use_waits_for_what_is_being_made() throws Exception {
    daemon.node.hold("create");
    Operation create = daemon.create();
    daemon.node.awaitHeld("create");
    AtomicBoolean used = new AtomicBoolean();
    Thread user =
        Thread.ofVirtual()
            .start(
                () -> {
                  try (SandboxService.Use use =
                      daemon.sandboxes.use(ME, create.sandboxId().orElseThrow())) {
                    used.set(use.sandbox().state() == SandboxState.RUNNING);
                  }
                });
    daemon.node.open("create");
    user.join();
    assertThat(used).isTrue();
  }

  @Test
  @DisplayName("timers survive a restart of the daemon")
  void timers_survive_a_restart() {
    String soon = daemon.running(expiring(OnTimeout.DELETE));
    String late =
        daemon.running(
            request(Optional.of(Duration.ofHours(1)), OnTimeout.SUSPEND, Optional.empty(), false));
    daemon.close();
    clock.advance(Duration.ofMinutes(10));
    daemon = new Daemon(store, host, clock).start();
    isDeleted(soon);
    assertThat(daemon.state(late)).isEqualTo(SandboxState.RUNNING);
    pass(Duration.ofMinutes(50));
    becomes(late, SandboxState.SUSPENDED);
  }

  @Test
  @DisplayName("behaviour 29: to the second whatever the load")
  void timers_are_on_time_under_load() throws Exception {
    AtomicBoolean busy = new AtomicBoolean(true);
    List<Thread> load = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      load.add(
          Thread.ofVirtual()
              .start(
                  () -> {
                    for (long n = 0; busy.get(); n++) {
                      if (n % 1_000_000 == 0) {
                        // As every call to the store or a node does. Spinning threads that only
                        // yield would starve all that platform threads start.
                        LockSupport.parkNanos(100_000);
                      }
                    }
                  }));
    }
    // How late a plain sleep ends beside that load, and whatever else this host does.
    AtomicLong lateMillis = new AtomicLong();
    load.add(
        Thread.ofVirtual()
            .start(
                () -> {
                  while (busy.get()) {
                    long due = System.nanoTime() + 1_000_000;
                    LockSupport.parkNanos(1_000_000);
                    long late = (System.nanoTime() - due) / 1_000_000;
                    lateMillis.accumulateAndGet(late, Math::max);
                  }
                }));
    Map<Instant, Instant> fired = new java.util.concurrent.ConcurrentHashMap<>();
    try (Timers timers = new Timers(InstantSource.system())) {
      Instant start = Instant.now();
      for (int i = 0; i < 1000; i++) {
        timers.arm(
            new Timers.Key(start.plusMillis(i).toString(), Timers.Kind.EXPIRY),
            start.plusMillis(i));
      }
      timers.start(key -> fired.put(Instant.parse(key.id()), Instant.now()));
      await().until(() -> fired.size() == 1000);
    } finally {
      busy.set(false);
      for (Thread thread : load) {
        thread.join();
      }
    }
    Duration most = Duration.ofSeconds(1).plusMillis(2 * lateMillis.get());
    assertThat(fired.entrySet())
        .noneMatch(one -> one.getValue().isBefore(one.getKey()))
        .noneMatch(one -> one.getValue().isAfter(one.getKey().plus(most)));
  }
}
