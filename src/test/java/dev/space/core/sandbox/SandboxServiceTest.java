package dev.space.core.sandbox;

import static dev.space.core.sandbox.Daemon.BASE;
import static dev.space.core.sandbox.Daemon.ME;
import static dev.space.core.sandbox.Daemon.OTHER;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.space.core.ManualClock;
import dev.space.core.Samples;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.event.LifecycleEvent;
import dev.space.core.node.LaunchSpec;
import dev.space.core.operation.IdempotencyKey;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationState;
import dev.space.core.store.Store;
import dev.space.core.vm.VmExit;
import dev.space.store.SqliteStore;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class SandboxServiceTest {

  private static final Optional<IdempotencyKey> NO_KEY = Optional.empty();

  @TempDir private Path directory;
  private final ManualClock clock = new ManualClock(Samples.NOW);
  private final FakeHost host = new FakeHost();
  private Store store;
  private Daemon daemon;
  private SandboxService sandboxes;
  private FakeNode node;

  @BeforeEach
  void start() {
    store = SqliteStore.open(directory);
    daemon = new Daemon(store, host, clock).start();
    sandboxes = daemon.sandboxes;
    node = daemon.node;
  }

  @AfterEach
  void stop() {
    daemon.close();
    store.close();
    assertThat(host.violations).isEmpty();
  }

  private static void refused(ErrorCode code, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.code()).as(e.getMessage()).isEqualTo(code));
  }

  @Test
  void a_create_is_answered_at_once_and_then_runs() throws Exception {
    node.hold("create");
    Operation operation = daemon.create();
    String id = operation.sandboxId().orElseThrow();
    node.awaitHeld("create");

    assertThat(id).matches("i[a-z0-9]{19}");
    assertThat(operation.id()).matches("o[a-z0-9]{19}");
    assertThat(daemon.state(id)).isEqualTo(SandboxState.CREATING);
    Operation seen = daemon.operations.get(ME, operation.id(), Duration.ZERO);
    assertThat(seen.state()).isEqualTo(OperationState.RUNNING);
    assertThat(seen.progress()).contains("making a disk");

    node.open("create");
    assertThat(daemon.succeeded(operation).resultIds()).containsExactly(id);
    assertThat(daemon.state(id)).isEqualTo(SandboxState.RUNNING);
    LaunchSpec spec = Optional.ofNullable(node.specs.get(id)).orElseThrow();
    assertThat(spec.source()).isEqualTo(new LaunchSpec.Source.Template(Samples.DIGEST));
    assertThat(spec.adoption().newIdentity()).isTrue();
    assertThat(spec.adoption().env()).containsEntry("LANG", "C.UTF-8");
    assertThat(spec.adoption().defaultUser()).contains("user");
  }

  @Test
  @DisplayName("behaviour 25: a create that fails leaves nothing behind and names the cause")
  void a_failed_create_leaves_nothing() {
    node.fail("create", ErrorCode.CAPACITY);
    Operation failed = daemon.failed(daemon.create());
    String id = failed.sandboxId().orElseThrow();

    assertThat(failed.error().orElseThrow().code()).isEqualTo(ErrorCode.CAPACITY);
    assertThat(sandboxes.get(ME, id).cause().orElseThrow().code()).isEqualTo(ErrorCode.CAPACITY);
    assertThat(host.held).isEmpty();

    clock.advance(SandboxMoves.FAILED_CREATE_KEPT);
    sandboxes.clockMoved();
    await().untilAsserted(() -> refused(ErrorCode.SANDBOX_NOT_FOUND, () -> sandboxes.get(ME, id)));
  }

  @Test
  @DisplayName("behaviour 25: a create that is retried with its key makes one sandbox")
  void the_same_key_gives_the_same_operation() {
    Optional<IdempotencyKey> key = Optional.of(new IdempotencyKey("mine", "f1"));
    Operation first = sandboxes.create(ME, CreateSandbox.of(BASE), key);
    Operation again = sandboxes.create(ME, CreateSandbox.of(BASE), key);

    assertThat(again.id()).isEqualTo(first.id());
    daemon.succeeded(first);
    assertThat(node.calls).hasSize(1);
    refused(
        ErrorCode.IDEMPOTENCY_MISMATCH,
        () ->
            sandboxes.create(
                ME, CreateSandbox.of(BASE), Optional.of(new IdempotencyKey("mine", "f2"))));
    assertThat(sandboxes.create(OTHER, CreateSandbox.of(BASE), key).id()).isNotEqualTo(first.id());

    clock.advance(Duration.ofHours(24));
    assertThat(sandboxes.create(ME, CreateSandbox.of(BASE), key).id()).isNotEqualTo(first.id());
  }

  @Test
  void pause_suspend_and_wake_lead_where_they_say() {
    String id = daemon.running();

    daemon.succeeded(sandboxes.pause(ME, id, NO_KEY));
    assertThat(daemon.state(id)).isEqualTo(SandboxState.PAUSED);
    daemon.succeeded(sandboxes.wake(ME, id, NO_KEY));
    assertThat(daemon.state(id)).isEqualTo(SandboxState.RUNNING);
    daemon.succeeded(sandboxes.suspend(ME, id, NO_KEY));
    assertThat(daemon.state(id)).isEqualTo(SandboxState.SUSPENDED);
    daemon.succeeded(sandboxes.wake(ME, id, NO_KEY));
    assertThat(daemon.state(id)).isEqualTo(SandboxState.RUNNING);
    daemon.succeeded(sandboxes.pause(ME, id, NO_KEY));
    daemon.succeeded(sandboxes.suspend(ME, id, NO_KEY));
    assertThat(daemon.state(id)).isEqualTo(SandboxState.SUSPENDED);
  }

  @Test
  void what_is_so_already_succeeds_without_a_call() {
    String id = daemon.running();
    int calls = node.calls.size();
    daemon.succeeded(sandboxes.wake(ME, id, NO_KEY));
    assertThat(node.calls).hasSize(calls);

    daemon.succeeded(sandboxes.pause(ME, id, NO_KEY));
    daemon.succeeded(sandboxes.pause(ME, id, NO_KEY));
    daemon.succeeded(sandboxes.suspend(ME, id, NO_KEY));
    daemon.succeeded(sandboxes.suspend(ME, id, NO_KEY));
    assertThat(node.calls).hasSize(calls + 2);
  }

  @Test
  void an_illegal_call_names_the_state_and_what_is_possible() {
    String id = daemon.running();
    daemon.succeeded(sandboxes.suspend(ME, id, NO_KEY));

    assertThatThrownBy(() -> sandboxes.pause(ME, id, NO_KEY))
        .isInstanceOfSatisfying(
            SpaceException.class,
            e -> {
              assertThat(e.code()).isEqualTo(ErrorCode.ILLEGAL_STATE);
              assertThat(e.problem().detail()).contains("suspended").contains("pause");
              assertThat(e.problem().remedy().orElseThrow()).contains("suspend, wake, delete");
            });
    refused(ErrorCode.ILLEGAL_STATE, () -> sandboxes.fork(ME, id, 1, NO_KEY));
    refused(ErrorCode.ILLEGAL_STATE, () -> sandboxes.snapshot(ME, id, Optional.empty(), NO_KEY));
    refused(ErrorCode.ILLEGAL_STATE, () -> sandboxes.use(ME, id));
  }

  @Test
  @DisplayName(
      "behaviour 21: suspend right after create waits; wake right after suspend; two wakes")
  void calls_wait_their_turn_and_get_true_answers() throws Exception {
    node.hold("create");
    Operation create = daemon.create();
    String id = create.sandboxId().orElseThrow();
    node.awaitHeld("create");
    Operation suspend = sandboxes.suspend(ME, id, NO_KEY);
    Operation wake = sandboxes.wake(ME, id, NO_KEY);
    Operation wakeToo = sandboxes.wake(ME, id, NO_KEY);
    Operation pause = sandboxes.pause(ME, id, NO_KEY);
    assertThat(suspend.state()).isEqualTo(OperationState.PENDING);
    assertThat(daemon.state(id)).isEqualTo(SandboxState.CREATING);

    node.open("create");
    daemon.succeeded(create);
    daemon.succeeded(suspend);
    daemon.succeeded(wake);
    daemon.succeeded(wakeToo);
    daemon.succeeded(pause);
    assertThat(daemon.state(id)).isEqualTo(SandboxState.PAUSED);
    assertThat(node.calls)
        .containsExactly("create " + id, "suspend " + id, "wake " + id, "pause " + id);
  }

  @Test
  void what_waited_in_vain_fails_with_the_reason() throws Exception {
    String id = daemon.running();
    node.hold("suspend");
    node.fail("suspend", ErrorCode.DISK_FULL);
    Operation suspend = sandboxes.suspend(ME, id, NO_KEY);
    node.awaitHeld("suspend");
    Operation wake = sandboxes.wake(ME, id, NO_KEY);
    refused(ErrorCode.ILLEGAL_STATE, () -> sandboxes.use(ME, id));
    node.open("suspend");

    assertThat(daemon.failed(suspend).error().orElseThrow().code()).isEqualTo(ErrorCode.DISK_FULL);
    daemon.succeeded(wake); // it runs, which is what was asked for
    assertThat(daemon.state(id)).isEqualTo(SandboxState.RUNNING);
  }

  @Test
  @DisplayName("behaviour 22: a failed suspend rolls back to where it came from")
  void a_failed_suspend_rolls_back() {
    String id = daemon.running();
    node.fail("suspend", ErrorCode.DISK_FULL);
    daemon.failed(sandboxes.suspend(ME, id, NO_KEY));
    assertThat(daemon.state(id)).isEqualTo(SandboxState.RUNNING);

    daemon.succeeded(sandboxes.pause(ME, id, NO_KEY));
    daemon.failed(sandboxes.suspend(ME, id, NO_KEY));
    assertThat(daemon.state(id)).isEqualTo(SandboxState.PAUSED);
  }

  @Test
  @DisplayName("behaviour 22: a failed wake leaves the saved state and can be tried again")
  void a_failed_wake_can_be_tried_again() {
    String id = daemon.running();
    daemon.succeeded(sandboxes.suspend(ME, id, NO_KEY));
    node.fail("wake", ErrorCode.CAPACITY);
    daemon.failed(sandboxes.wake(ME, id, NO_KEY));
    assertThat(daemon.state(id)).isEqualTo(SandboxState.SUSPENDED);

    node.mend("wake");
    daemon.succeeded(sandboxes.wake(ME, id, NO_KEY));
    assertThat(daemon.state(id)).isEqualTo(SandboxState.RUNNING);
  }

  @Test
  @DisplayName("behaviours 21 and 24: a delete wins over everything and stays")
  void a_delete_wins_over_what_is_in_flight() throws Exception {
    for (String verb : List.of("create", "pause", "suspend", "wake", "snapshot")) {
      node.hold("create");
      Operation create = daemon.create();
      String id = create.sandboxId().orElseThrow();
      node.awaitHeld("create");
      Operation inFlight = create;
      if (!verb.equals("create")) {
        node.open("create");
        daemon.succeeded(create);
        if (verb.equals("wake")) {
          daemon.succeeded(sandboxes.suspend(ME, id, NO_KEY));
        }
        node.hold(verb);
        inFlight =
            switch (verb) {
              case "pause" -> sandboxes.pause(ME, id, NO_KEY);
              case "suspend" -> sandboxes.suspend(ME, id, NO_KEY);
              case "wake" -> sandboxes.wake(ME, id, NO_KEY);
              default -> sandboxes.snapshot(ME, id, Optional.of("n"), NO_KEY);
            };
        node.awaitHeld(verb);
      }
      Operation waiting = sandboxes.suspend(ME, id, NO_KEY);

      Operation delete = sandboxes.delete(ME, id, NO_KEY);
      daemon.succeeded(delete); // though the call in flight is still held
      node.open(verb);

      for (Operation lost : List.of(inFlight, waiting)) {
        Operation ended = daemon.ended(lost);
        assertThat(ended.state()).as(verb).isEqualTo(OperationState.CANCELLED);
        assertThat(ended.error().orElseThrow().detail()).contains("deleted");
      }
      refused(ErrorCode.SANDBOX_NOT_FOUND, () -> sandboxes.get(ME, id));
      refused(ErrorCode.SANDBOX_NOT_FOUND, () -> sandboxes.wake(ME, id, NO_KEY));
      assertThat(sandboxes.delete(ME, id, NO_KEY).id()).isEqualTo(delete.id());
      await().until(() -> sandboxes.busyLanes() == 0);
      assertThat(host.held).as(verb).isEmpty();
      assertThat(host.vms).isEmpty();
      assertThat(host.saved).isEmpty();
      assertThat(host.snapshots).isEmpty();
    }
  }

  @Test
  @DisplayName("behaviour 24: deleting what sleeps never wakes it")
  void a_delete_wakes_nothing() {
    String id = daemon.running();
    daemon.succeeded(sandboxes.suspend(ME, id, NO_KEY));
    daemon.succeeded(sandboxes.delete(ME, id, NO_KEY));
    assertThat(node.calls).doesNotContain("wake " + id);
  }

  @Test
  void a_delete_that_fails_can_be_repeated() {
    String id = daemon.running();
    node.fail("delete", ErrorCode.INTERNAL);
    Operation failed = daemon.failed(sandboxes.delete(ME, id, NO_KEY));
    assertThat(daemon.state(id)).isEqualTo(SandboxState.DELETING);
    refused(ErrorCode.ILLEGAL_STATE, () -> sandboxes.pause(ME, id, NO_KEY));

    node.mend("delete");
    Operation again = sandboxes.delete(ME, id, NO_KEY);
    assertThat(again.id()).isNotEqualTo(failed.id());
    daemon.succeeded(again);
  }

  @Test
  @DisplayName("behaviour 28: a guest that dies is failed or stopped with its cause")
  void a_guest_that_dies_is_seen() {
    CopyOnWriteArrayList<String> told = new CopyOnWriteArrayList<>();
    sandboxes.listen((before, now) -> told.add(before.wire() + ">" + now.state().wire()));
    String stopped = daemon.running();
    String panicked = daemon.running();

    node.die(stopped, VmExit.Kind.STOPPED);
    node.die(panicked, VmExit.Kind.PANICKED);
    await().until(() -> daemon.state(stopped) == SandboxState.STOPPED);
    await().until(() -> daemon.state(panicked) == SandboxState.FAILED);

    assertThat(sandboxes.get(ME, panicked).cause().orElseThrow().oneLine())
        .contains("panicked", "it was told to");
    await().untilAsserted(() -> assertThat(told).contains("running>stopped", "running>failed"));
    refused(ErrorCode.ILLEGAL_STATE, () -> sandboxes.wake(ME, stopped, NO_KEY));
    daemon.succeeded(sandboxes.delete(ME, stopped, NO_KEY));
  }

  @Test
  void an_operation_whose_sandbox_dies_fails_with_that() throws Exception {
    String id = daemon.running();
    node.hold("pause");
    Operation pause = sandboxes.pause(ME, id, NO_KEY);
    node.awaitHeld("pause");
    node.die(id, VmExit.Kind.VMM_DIED);
    await().until(() -> daemon.state(id) == SandboxState.FAILED);
    node.open("pause");

    assertThat(daemon.failed(pause).error().orElseThrow().code()).isEqualTo(ErrorCode.SANDBOX_DIED);
    assertThat(daemon.state(id)).isEqualTo(SandboxState.FAILED);
  }

  @Test
  void snapshots_are_sources_for_creates() {
    String id = daemon.running();
    Operation taken = daemon.succeeded(sandboxes.snapshot(ME, id, Optional.of("n"), NO_KEY));
    String snapshot = taken.resultIds().getFirst();
    assertThat(daemon.snapshots.get(ME, snapshot).name()).contains("n");
    refused(ErrorCode.SNAPSHOT_NOT_FOUND, () -> daemon.snapshots.get(OTHER, snapshot));

    String copy = daemon.running(fromSnapshot(snapshot, Optional.empty()));
    assertThat(sandboxes.get(ME, copy).snapshotId()).contains(snapshot);
    assertThat(sandboxes.get(ME, copy).templateDigest()).isEqualTo(Samples.DIGEST);
    refused(
        ErrorCode.INVALID_REQUEST, () -> daemon.create(fromSnapshot(snapshot, Optional.of(1024))));
    refused(
        ErrorCode.SNAPSHOT_NOT_FOUND,
        () -> sandboxes.create(OTHER, fromSnapshot(snapshot, Optional.empty()), NO_KEY));

    refused(ErrorCode.CONFLICT, () -> daemon.snapshots.delete(ME, snapshot));
    daemon.succeeded(sandboxes.delete(ME, copy, NO_KEY));
    daemon.snapshots.delete(ME, snapshot);
    refused(ErrorCode.SNAPSHOT_NOT_FOUND, () -> daemon.snapshots.delete(ME, snapshot));
    assertThat(host.snapshots).isEmpty();
  }

  private static CreateSandbox fromSnapshot(String id, Optional<Integer> memory) {
    return new CreateSandbox(
        new CreateSandbox.Source.FromSnapshot(id),
        Optional.empty(),
        memory,
        Optional.empty(),
        Map.of(),
        Map.of(),
        Optional.empty(),
        OnTimeout.DELETE,
        Optional.empty(),
        false);
  }

  @Test
  void a_fork_makes_copies_and_its_snapshot_goes_with_the_last_of_them() {
    String id = daemon.running();
    Operation fork = daemon.succeeded(sandboxes.fork(ME, id, 3, NO_KEY));

    assertThat(fork.resultIds()).hasSize(3);
    fork.resultIds()
        .forEach(copy -> assertThat(daemon.state(copy)).isEqualTo(SandboxState.RUNNING));
    assertThat(daemon.snapshots.list(ME, Optional.empty(), 10, Optional.empty()).items()).isEmpty();
    assertThat(host.snapshots).hasSize(1);
    for (String copy : fork.resultIds()) {
      daemon.succeeded(sandboxes.delete(ME, copy, NO_KEY));
    }
    await().until(() -> host.snapshots.isEmpty());
  }

  @Test
  void a_fork_that_makes_some_copies_says_which() {
    String id = daemon.running();
    CopyOnWriteArrayList<String> created = new CopyOnWriteArrayList<>();
    node.faults(
        (verb, sandbox) -> {
          if (verb.equals("create") && created.addIfAbsent(sandbox) && created.size() > 2) {
            return Optional.of(dev.space.core.error.Problem.of(ErrorCode.CAPACITY, "no more room"));
          }
          return Optional.empty();
        });
    Operation fork = daemon.failed(sandboxes.fork(ME, id, 5, NO_KEY));

    assertThat(fork.error().orElseThrow().code()).isEqualTo(ErrorCode.CAPACITY);
    assertThat(fork.error().orElseThrow().detail()).contains("3 of 5");
    assertThat(fork.resultIds()).hasSize(2);
    assertThat(sandboxes.list(ME, all()).items()).hasSize(3);
    assertThat(host.held).hasSize(3);
  }

  @Test
  @DisplayName("behaviour 24: deleting the source of a fork leaves no copy")
  void a_fork_whose_source_is_deleted_leaves_nothing() throws Exception {
    String id = daemon.running();
    node.hold("create");
    Operation fork = sandboxes.fork(ME, id, 4, NO_KEY);
    node.awaitHeld("create");
    daemon.succeeded(sandboxes.delete(ME, id, NO_KEY));
    node.open("create");

    assertThat(daemon.ended(fork).state()).isEqualTo(OperationState.CANCELLED);
    await().until(() -> sandboxes.busyLanes() == 0);
    assertThat(sandboxes.list(ME, all()).items()).isEmpty();
    assertThat(host.held).isEmpty();
    assertThat(host.snapshots).isEmpty();
  }

  private static SandboxQuery all() {
    return new SandboxQuery(java.util.Set.of(), Optional.empty(), Map.of(), 100, Optional.empty());
  }

  @Test
  @DisplayName("behaviour 39: foreign and missing ids answer the same")
  void projects_do_not_see_each_other() {
    String id = daemon.running();
    Operation operation = daemon.ended(sandboxes.wake(ME, id, NO_KEY));

    for (String asked : List.of(id, "i0000000000000000000")) {
      refused(ErrorCode.SANDBOX_NOT_FOUND, () -> sandboxes.get(OTHER, asked));
      refused(ErrorCode.SANDBOX_NOT_FOUND, () -> sandboxes.pause(OTHER, asked, NO_KEY));
      refused(ErrorCode.SANDBOX_NOT_FOUND, () -> sandboxes.delete(OTHER, asked, NO_KEY));
      refused(ErrorCode.SANDBOX_NOT_FOUND, () -> sandboxes.use(OTHER, asked));
      refused(ErrorCode.SANDBOX_NOT_FOUND, () -> sandboxes.fork(OTHER, asked, 1, NO_KEY));
    }
    refused(
        ErrorCode.OPERATION_NOT_FOUND,
        () -> daemon.operations.get(OTHER, operation.id(), Duration.ZERO));
    assertThat(sandboxes.list(OTHER, all()).items()).isEmpty();
  }

  @Test
  void events_tell_what_happened_in_order() {
    String id = daemon.running();
    daemon.succeeded(sandboxes.suspend(ME, id, NO_KEY));
    daemon.succeeded(sandboxes.delete(ME, id, NO_KEY));

    List<LifecycleEvent> events = store.read(tx -> tx.events().after(ME.project(), 0, 100));
    assertThat(events)
        .extracting(LifecycleEvent::type)
        .containsExactly(
            "sandbox.creating",
            "sandbox.running",
            "operation.succeeded",
            "sandbox.suspending",
            "sandbox.suspended",
            "operation.succeeded",
            "sandbox.deleting",
            "sandbox.deleted",
            "operation.succeeded");
    List<Operation> done =
        daemon.operations.list(ME, Optional.of(id), 10, Optional.empty()).items();
    assertThat(done).extracting(o -> o.kind().name()).containsOnly("DELETE", "SUSPEND", "CREATE");
  }

  @Test
  void a_service_that_stops_refuses_new_work() {
    String id = daemon.running();
    daemon.close();
    refused(ErrorCode.SHUTTING_DOWN, () -> daemon.create());
    refused(ErrorCode.SHUTTING_DOWN, () -> sandboxes.delete(ME, id, NO_KEY));
    assertThat(daemon.state(id)).isEqualTo(SandboxState.RUNNING);
  }
}
