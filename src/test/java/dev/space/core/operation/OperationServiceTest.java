package dev.space.core.operation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.Ids;
import dev.space.core.Samples;
import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.event.EventService;
import dev.space.core.event.LifecycleEvent;
import dev.space.core.store.Store;
import dev.space.core.template.TemplateRef;
import dev.space.store.SqliteStore;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(30)
class OperationServiceTest {

  private static final Caller ME = new Caller("p", "k", "r");
  private static final Duration LONG = Duration.ofSeconds(20);

  @TempDir private Path directory;
  private Store store;
  private EventService events;
  private Ledger ledger;
  private OperationService operations;

  @BeforeEach
  void open() {
    store = SqliteStore.open(directory);
    events = new EventService(store);
    ledger = new Ledger(store, new Ids(new SecureRandom()), InstantSource.system(), events);
    operations = new OperationService(ledger);
  }

  @AfterEach
  void close() {
    operations.close();
    ledger.close();
    store.close();
  }

  private Operation submit(Optional<IdempotencyKey> key, OperationService.Work work) {
    return operations.submit(ME, OperationKind.TEMPLATE_BUILD, Map.of("name", "base"), key, work);
  }

  private static void hold(CountDownLatch gate) {
    try {
      gate.await();
    } catch (InterruptedException e) {
      throw Problem.of(ErrorCode.CANCELLED, "given up").toException(e);
    }
  }

  @Test
  void a_wait_ends_with_the_operation_and_what_it_made_is_recorded_with_it() {
    CountDownLatch gate = new CountDownLatch(1);
    CountDownLatch told = new CountDownLatch(1);
    Operation operation =
        submit(
            Optional.empty(),
            (o, progress) -> {
              progress.accept("step 1");
              told.countDown();
              hold(gate);
              return new OperationService.Result(
                  List.of(Samples.DIGEST),
                  tx -> tx.templates().insert("p", Samples.template(Samples.DIGEST)));
            });
    hold(told);
    Operation early = operations.get(ME, operation.id(), Duration.ofMillis(1));
    assertThat(early.state()).isEqualTo(OperationState.RUNNING);
    assertThat(early.progress()).contains("step 1");

    gate.countDown();
    Operation ended = operations.get(ME, operation.id(), LONG);
    assertThat(ended.state()).isEqualTo(OperationState.SUCCEEDED);
    assertThat(ended.resultIds()).containsExactly(Samples.DIGEST);
    boolean there =
        store.<Boolean>read(
            tx -> tx.templates().find("p", new TemplateRef.Digest(Samples.DIGEST)).isPresent());
    assertThat(there).isTrue();
  }

  @Test
  void a_failure_is_told_and_a_defect_keeps_its_secrets() {
    Operation failed =
        submit(
            Optional.empty(),
            (o, progress) -> {
              throw Problem.of(ErrorCode.TEMPLATE_BUILD_FAILED, "no").because("why").toException();
            });
    Operation defect =
        submit(
            Optional.empty(),
            (o, progress) -> {
              throw new IllegalStateException("secret");
            });

    assertThat(operations.get(ME, failed.id(), LONG).error().orElseThrow().code())
        .isEqualTo(ErrorCode.TEMPLATE_BUILD_FAILED);
    Operation ended = operations.get(ME, defect.id(), LONG);
    assertThat(ended.error().orElseThrow().code()).isEqualTo(ErrorCode.INTERNAL);
    assertThat(ended.toString()).doesNotContain("secret");
  }

  @Test
  @DisplayName("behaviour 10: the same key does the work once")
  void the_same_key_does_the_work_once() {
    AtomicInteger runs = new AtomicInteger();
    Optional<IdempotencyKey> key = Optional.of(new IdempotencyKey("k", "f"));
    OperationService.Work work =
        (o, progress) -> {
          runs.incrementAndGet();
          return new OperationService.Result(List.of(), tx -> {});
        };
    Operation first = submit(key, work);
    operations.get(ME, first.id(), LONG);
    assertThat(submit(key, work).id()).isEqualTo(first.id());
    assertThat(runs).hasValue(1);
    for (IdempotencyKey bad :
        List.of(
            new IdempotencyKey("k", "g"),
            new IdempotencyKey("", "f"),
            new IdempotencyKey("x".repeat(256), "f"),
            new IdempotencyKey("a\nb", "f"))) {
      assertThatThrownBy(() -> submit(Optional.of(bad), work))
          .isInstanceOfSatisfying(
              SpaceException.class,
              e ->
                  assertThat(e.code())
                      .isIn(ErrorCode.IDEMPOTENCY_MISMATCH, ErrorCode.INVALID_REQUEST));
    }
  }

  @Test
  void closing_gives_up_what_runs() {
    CountDownLatch began = new CountDownLatch(1);
    Operation operation =
        submit(
            Optional.empty(),
            (o, progress) -> {
              began.countDown();
              hold(new CountDownLatch(1));
              return new OperationService.Result(List.of(), tx -> {});
            });
    hold(began);
    operations.close();
    assertThat(operations.get(ME, operation.id(), Duration.ZERO).error().orElseThrow().code())
        .isEqualTo(ErrorCode.CANCELLED);
  }

  @Test
  void followers_get_what_was_and_what_comes_of_their_project_alone() throws Exception {
    append("p", "one");
    append("q", "foreign");
    BlockingQueue<LifecycleEvent> fromStart = new LinkedBlockingQueue<>();
    BlockingQueue<LifecycleEvent> fromSecond = new LinkedBlockingQueue<>();
    Thread first = Thread.ofVirtual().start(() -> events.follow(ME, 0, fromStart::add));
    Thread second = Thread.ofVirtual().start(() -> events.follow(ME, 1, fromSecond::add));
    append("p", "two");
    for (int i = 0; i < 1200; i++) {
      append("p", "more");
    }
    append("p", "last");

    assertThat(types(fromStart)).startsWith("one", "two").endsWith("more", "last").hasSize(1203);
    assertThat(types(fromSecond)).startsWith("two").hasSize(1202);
    first.interrupt();
    second.interrupt();
    first.join();
    second.join();
  }

  private void append(String project, String type) {
    ledger.write(
        entry -> {
          entry.event(project, type, Optional.empty(), Optional.empty(), Map.of());
          return true;
        });
  }

  private static List<String> types(BlockingQueue<LifecycleEvent> queue)
      throws InterruptedException {
    List<String> types = new java.util.ArrayList<>();
    while (types.isEmpty() || !types.getLast().equals("last")) {
      types.add(Optional.ofNullable(queue.poll(20, TimeUnit.SECONDS)).orElseThrow().type());
    }
    return types;
  }
}
