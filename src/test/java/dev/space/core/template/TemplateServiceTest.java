package dev.space.core.template;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.Ids;
import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.event.EventService;
import dev.space.core.operation.IdempotencyKey;
import dev.space.core.operation.Ledger;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationService;
import dev.space.core.operation.OperationState;
import dev.space.core.store.Store;
import dev.space.store.SqliteStore;
import java.io.InputStream;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TemplateServiceTest {

  private static final String DIGEST = "sha256:" + "a".repeat(64);
  private static final Caller CALLER = new Caller("default", "key", "request");
  private static final Caller OTHER = new Caller("other", "key2", "request2");
  private static final TemplateRef.Tagged TAG = new TemplateRef.Tagged("app", "v1");

  @TempDir private Path dir;
  private final TemplatesOnly node = new TemplatesOnly();
  private final Builder builder = new Builder();
  private Optional<Running> running = Optional.empty();

  private record Running(
      Store store, Ledger ledger, OperationService operations, TemplateService templates) {}

  private static final class Builder implements TemplateBuilder {
    final AtomicInteger staged = new AtomicInteger();
    final CountDownLatch go = new CountDownLatch(1);
    volatile Optional<Problem> fails = Optional.empty();

    @Override
    public Staged stage(InputStream recipeTar) {
      staged.incrementAndGet();
      return new Staged() {
        @Override
        public String fingerprint() {
          return "f";
        }

        @Override
        public Built build(Function<TemplateRef, String> resolve, BuildLog log) {
          log.step("installing");
          log.line("a line");
          try {
            go.await();
          } catch (InterruptedException e) {
            throw Problem.of(ErrorCode.CANCELLED, "cancelled").toException(e);
          }
          if (fails.isPresent()) {
            throw fails.get().toException();
          }
          log.line("the last line");
          return new Built(DIGEST, Template.Defaults.NONE, 7);
        }

        @Override
        public void close() {
          staged.decrementAndGet();
        }
      };
    }
  }

  @BeforeEach
  void open() {
    Store store = SqliteStore.open(dir.resolve("data"));
    Ledger ledger =
        new Ledger(
            store, new Ids(new SecureRandom()), InstantSource.system(), new EventService(store));
    OperationService operations = new OperationService(ledger);
    running =
        Optional.of(
            new Running(
                store,
                ledger,
                operations,
                new TemplateService(
                    ledger, operations, builder, node, new BuildLogs(dir.resolve("logs")))));
  }

  @AfterEach
  void close() {
    running.ifPresent(
        r -> {
          r.operations().close();
          r.ledger().close();
          r.store().close();
        });
  }

  private TemplateService templates() {
    return running.orElseThrow().templates();
  }

  private Operation end(Operation operation) {
    return running.orElseThrow().operations().get(CALLER, operation.id(), Duration.ofSeconds(20));
  }

  private Operation build() {
    return templates().build(CALLER, TAG, InputStream.nullInputStream(), Optional.empty());
  }

  @Test
  void aBuildEndsInATaggedTemplateThatWasBootedOnce() {
    builder.go.countDown();
    Operation ended = end(build());
    assertThat(ended.state()).isEqualTo(OperationState.SUCCEEDED);
    assertThat(ended.resultIds()).containsExactly(DIGEST);
    assertThat(templates().get(CALLER, TAG).digest()).isEqualTo(DIGEST);
    assertThat(templates().get(CALLER, TAG).tags()).containsExactly("app:v1");
    assertThat(node.prepared).containsExactly(DIGEST);
    assertThat(builder.staged).hasValue(0);
  }

  @Test
  void theLogIsFollowedFromAnyLineToTheEnd() throws Exception {
    Operation operation = build();
    List<String> all = new ArrayList<>();
    CountDownLatch second = new CountDownLatch(2);
    Thread follower =
        Thread.ofVirtual()
            .start(
                () ->
                    templates()
                        .buildLog(
                            CALLER,
                            operation.id(),
                            0,
                            (n, text) -> {
                              all.add(n + " " + text);
                              second.countDown();
                            }));
    second.await();
    builder.go.countDown();
    assertThat(follower.join(Duration.ofSeconds(20))).isTrue();
    assertThat(all)
        .containsExactly(
            "1 # installing", "2 a line", "3 the last line", "4 # booting the template once");
    end(operation);
    List<String> rest = new ArrayList<>();
    templates().buildLog(CALLER, operation.id(), 2, (n, text) -> rest.add(n + " " + text));
    assertThat(rest).containsExactly("3 the last line", "4 # booting the template once");
    assertThatThrownBy(() -> templates().buildLog(OTHER, operation.id(), 0, (_, _) -> {}))
        .isInstanceOf(SpaceException.class);
  }

  @Test
  void aFailedBuildNamesItsCauseAndLeavesNoTemplate() {
    builder.fails =
        Optional.of(Problem.of(ErrorCode.TEMPLATE_BUILD_FAILED, "no").because("apt said no"));
    builder.go.countDown();
    Operation ended = end(build());
    assertThat(ended.state()).isEqualTo(OperationState.FAILED);
    assertThat(ended.error().orElseThrow().cause()).contains("apt said no");
    assertThat(templates().list(CALLER, 10, Optional.empty()).items()).isEmpty();
    assertThat(builder.staged).hasValue(0);
  }

  @Test
  void aTemplateThatDoesNotBootIsNotKept() {
    node.failing = true;
    builder.go.countDown();
    assertThat(end(build()).state()).isEqualTo(OperationState.FAILED);
    assertThat(node.deleted).containsExactly(DIGEST);
    assertThat(templates().list(CALLER, 10, Optional.empty()).items()).isEmpty();
  }

  @Test
  void aRepeatedBuildWithItsKeyIsTheSameOperation() {
    Optional<IdempotencyKey> key = Optional.of(new IdempotencyKey("k", "f"));
    Operation first = templates().build(CALLER, TAG, InputStream.nullInputStream(), key);
    Operation again = templates().build(CALLER, TAG, InputStream.nullInputStream(), key);
    assertThat(again.id()).isEqualTo(first.id());
    assertThat(builder.staged).hasValue(1);
    builder.go.countDown();
    end(first);
    assertThat(builder.staged).hasValue(0);
  }

  @Test
  void tagsMoveAndGo() {
    TemplateBuilder.Built built = new TemplateBuilder.Built(DIGEST, Template.Defaults.NONE, 7);
    templates().register("default", TAG, built);
    TemplateRef.Tagged latest = new TemplateRef.Tagged("app", "latest");
    assertThat(templates().tag(CALLER, TAG, latest).tags()).containsExactly("app:latest", "app:v1");
    templates().untag(CALLER, TAG);
    assertThat(templates().get(CALLER, new TemplateRef.Digest(DIGEST)).tags())
        .containsExactly("app:latest");
    assertThatThrownBy(() -> templates().untag(CALLER, TAG))
        .isInstanceOfSatisfying(
            SpaceException.class,
            e -> assertThat(e.code()).isEqualTo(ErrorCode.TEMPLATE_NOT_FOUND));
    assertThatThrownBy(() -> templates().get(OTHER, latest)).isInstanceOf(SpaceException.class);
  }

  @Test
  void imagesGoWithTheLastProjectThatHasThem() {
    TemplateBuilder.Built built = new TemplateBuilder.Built(DIGEST, Template.Defaults.NONE, 7);
    templates().register("default", TAG, built);
    templates().register("other", TAG, built);
    templates().delete(CALLER, TAG);
    assertThat(node.deleted).isEmpty();
    assertThatThrownBy(() -> templates().get(CALLER, TAG)).isInstanceOf(SpaceException.class);
    templates().delete(OTHER, TAG);
    assertThat(node.deleted).containsExactly(DIGEST);
    assertThatThrownBy(() -> templates().delete(OTHER, TAG)).isInstanceOf(SpaceException.class);
  }
}
