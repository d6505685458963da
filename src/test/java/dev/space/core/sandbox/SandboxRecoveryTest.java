package dev.space.core.sandbox;

import static dev.space.core.sandbox.Daemon.ME;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.space.core.ManualClock;
import dev.space.core.Samples;
import dev.space.core.error.SpaceException;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationState;
import dev.space.store.SqliteStore;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// Behaviours 26 and 27: the daemon dies in the middle of a call, and another one starts.
@Timeout(60)
class SandboxRecoveryTest {

  @TempDir private Path directory;
  private final ManualClock clock = new ManualClock(Samples.NOW);
  private final FakeHost host = new FakeHost();
  private CrashingStore store;
  private Daemon daemon;

  @BeforeEach
  void start() {
    store = new CrashingStore(SqliteStore.open(directory), Integer.MAX_VALUE, false);
    daemon = new Daemon(store, host, clock);
    store.onCrash(daemon::crash);
    daemon.start();
  }

  private void restart() {
    store.close();
    start();
  }

  @AfterEach
  void stop() {
    daemon.close();
    store.close();
    assertThat(host.violations).isEmpty();
  }

  /// Dies while a call of this verb waits for its effect.
  private Operation dieDuring(String verb, java.util.function.Supplier<Operation> call)
      throws InterruptedException {
    daemon.node.hold(verb);
    Operation operation = call.get();
    daemon.node.awaitHeld(verb);
    restart();
    return operation;
  }

  private Operation ended(Operation operation) {
    return daemon.ended(operation);
  }

  @Test
  void what_rested_is_as_it_was() {
    String running = daemon.running();
    String paused = daemon.running();
    String suspended = daemon.running();
    daemon.succeeded(daemon.sandboxes.pause(ME, paused, Optional.empty()));
    daemon.succeeded(daemon.sandboxes.suspend(ME, suspended, Optional.empty()));
    restart();

    assertThat(daemon.state(running)).isEqualTo(SandboxState.RUNNING);
    assertThat(daemon.state(paused)).isEqualTo(SandboxState.PAUSED);
    assertThat(daemon.state(suspended)).isEqualTo(SandboxState.SUSPENDED);
    daemon.succeeded(daemon.sandboxes.wake(ME, suspended, Optional.empty()));
  }

  @Test
  void a_create_that_was_not_done_is_rolled_back() throws Exception {
    Operation create = dieDuring("create", () -> daemon.create());
    Operation failed = ended(create);

    assertThat(failed.state()).isEqualTo(OperationState.FAILED);
    assertThat(failed.error().orElseThrow().detail()).contains("stopped");
    assertThat(daemon.state(create.sandboxId().orElseThrow())).isEqualTo(SandboxState.FAILED);
    assertThat(host.held).isEmpty();
  }

  @Test
  @DisplayName("a create that was done but not recorded is finished")
  void a_create_that_was_done_is_finished() {
    Operation create = daemon.create();
    String id = create.sandboxId().orElseThrow();
    daemon.succeeded(create);
    // As if the last transaction had not been written.
    store.transact(
        tx -> {
          Sandbox s = tx.sandboxes().find(id).orElseThrow();
          tx.sandboxes().update(s.moved(SandboxState.CREATING, Optional.empty(), Samples.NOW));
          Operation o = tx.operations().find(create.id()).orElseThrow();
          return tx.operations()
              .update(
                  new Operation(
                      o.id(),
                      o.project(),
                      o.kind(),
                      o.sandboxId(),
                      OperationState.RUNNING,
                      Optional.empty(),
                      Optional.empty(),
                      java.util.List.of(),
                      o.createdAt(),
                      o.startedAt(),
                      Optional.empty(),
                      o.rev()));
        });
    restart();

    assertThat(daemon.succeeded(create).resultIds()).containsExactly(id);
    assertThat(daemon.state(id)).isEqualTo(SandboxState.RUNNING);
  }

  @Test
  void pause_suspend_and_wake_roll_back_to_what_the_node_has() throws Exception {
    String id = daemon.running();
    Operation pause = dieDuring("pause", () -> daemon.sandboxes.pause(ME, id, Optional.empty()));
    assertThat(ended(pause).state()).isEqualTo(OperationState.FAILED);
    assertThat(daemon.state(id)).isEqualTo(SandboxState.RUNNING);

    Operation suspend =
        dieDuring("suspend", () -> daemon.sandboxes.suspend(ME, id, Optional.empty()));
    assertThat(ended(suspend).state()).isEqualTo(OperationState.FAILED);
    assertThat(daemon.state(id)).isEqualTo(SandboxState.RUNNING);

    daemon.succeeded(daemon.sandboxes.pause(ME, id, Optional.empty()));
    dieDuring("suspend", () -> daemon.sandboxes.suspend(ME, id, Optional.empty()));
    assertThat(daemon.state(id)).isEqualTo(SandboxState.PAUSED);

    dieDuring("resume", () -> daemon.sandboxes.wake(ME, id, Optional.empty()));
    assertThat(daemon.state(id)).isEqualTo(SandboxState.PAUSED);

    daemon.succeeded(daemon.sandboxes.suspend(ME, id, Optional.empty()));
    Operation wake = dieDuring("wake", () -> daemon.sandboxes.wake(ME, id, Optional.empty()));
    assertThat(ended(wake).state()).isEqualTo(OperationState.FAILED);
    assertThat(daemon.state(id)).isEqualTo(SandboxState.SUSPENDED);
    daemon.succeeded(daemon.sandboxes.wake(ME, id, Optional.empty()));
  }

  @Test
  void what_was_waiting_is_done_after_the_start() throws Exception {
    String id = daemon.running();
    daemon.node.hold("pause");
    daemon.sandboxes.pause(ME, id, Optional.empty());
    daemon.node.awaitHeld("pause");
    Operation suspend = daemon.sandboxes.suspend(ME, id, Optional.empty());
    Operation wake = daemon.sandboxes.wake(ME, id, Optional.empty());
    restart();

    daemon.succeeded(suspend);
    daemon.succeeded(wake);
    assertThat(daemon.state(id)).isEqualTo(SandboxState.RUNNING);
  }

  @Test
  void a_vm_that_is_gone_is_failed_with_its_cause() {
    String running = daemon.running();
    String suspended = daemon.running();
    daemon.succeeded(daemon.sandboxes.suspend(ME, suspended, Optional.empty()));
    store.die();
    synchronized (host.lock) {
      host.vms.clear();
      host.saved.clear();
    }
    restart();

    for (String id : new String[] {running, suspended}) {
      assertThat(daemon.state(id)).isEqualTo(SandboxState.FAILED);
      assertThat(daemon.sandboxes.get(ME, id).cause().orElseThrow().detail()).contains("gone");
    }
  }

  @Test
  @DisplayName("behaviour 24: a delete that was answered is finished by the next start")
  void a_delete_is_finished() {
    String id = daemon.running();
    daemon.node.faults(
        (verb, sandbox) -> {
          if (verb.equals("delete")) {
            store.die();
          }
          return Optional.empty();
        });
    Operation delete = daemon.sandboxes.delete(ME, id, Optional.empty());
    await().until(() -> store.isDead());
    restart();

    daemon.succeeded(delete);
    assertThatThrownBy(() -> daemon.state(id)).isInstanceOf(SpaceException.class);
    assertThat(host.held).isEmpty();
  }

  @Test
  void a_fork_keeps_the_copies_that_came_up_and_a_snapshot_leaves_nothing() throws Exception {
    String id = daemon.running();
    Operation snapshot =
        dieDuring(
            "snapshot",
            () -> daemon.sandboxes.snapshot(ME, id, Optional.empty(), Optional.empty()));
    assertThat(ended(snapshot).state()).isEqualTo(OperationState.FAILED);
    assertThat(host.snapshots).isEmpty();

    Operation fork = dieDuring("create", () -> daemon.sandboxes.fork(ME, id, 3, Optional.empty()));
    Operation ended = ended(fork);
    assertThat(ended.state()).isEqualTo(OperationState.FAILED);
    assertThat(ended.resultIds()).isEmpty();
    assertThat(host.held).containsExactly(id);
    assertThat(host.snapshots).isEmpty();
  }

  @Test
  void a_build_that_was_under_way_is_failed() throws Exception {
    var began = new java.util.concurrent.CountDownLatch(1);
    Operation build =
        daemon.operations.submit(
            ME,
            dev.space.core.operation.OperationKind.TEMPLATE_BUILD,
            java.util.Map.of(),
            Optional.empty(),
            (operation, progress) -> {
              began.countDown();
              try {
                new java.util.concurrent.CountDownLatch(1).await();
              } catch (InterruptedException e) {
                throw new IllegalStateException(e);
              }
              return new dev.space.core.operation.OperationService.Result(
                  java.util.List.of(), tx -> {});
            });
    began.await();
    Daemon old = daemon;
    restart();
    old.operations.close();

    assertThat(daemon.operations.get(ME, build.id(), Duration.ZERO).state())
        .isEqualTo(OperationState.FAILED);
  }
}
