package dev.space.store;

import static dev.space.core.Samples.DIGEST;
import static dev.space.core.Samples.NOW;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.Samples;
import dev.space.core.access.StoredKey;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.event.LifecycleEvent;
import dev.space.core.guest.ProcessExit;
import dev.space.core.guest.ProcessSpec;
import dev.space.core.operation.IdempotencyKey;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationKind;
import dev.space.core.operation.OperationState;
import dev.space.core.sandbox.Sandbox;
import dev.space.core.sandbox.SandboxQuery;
import dev.space.core.sandbox.SandboxState;
import dev.space.core.session.Session;
import dev.space.core.session.SessionState;
import dev.space.core.store.Page;
import dev.space.core.store.Store;
import dev.space.core.template.Template;
import dev.space.core.template.TemplateRef;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/// What every store does. Each database has a subclass that opens one.
abstract class StoreContractTest {

  private Store store;

  /// An empty store.
  abstract Store open();

  @BeforeEach
  void openStore() {
    store = open();
  }

  @AfterEach
  void closeStore() {
    store.close();
  }

  private Sandbox insert(Sandbox sandbox) {
    return store.transact(tx -> tx.sandboxes().insert(sandbox));
  }

  private Sandbox insert(String id, String project, long secondsLater) {
    return insert(
        Samples.sandbox(id, project, NOW.plusSeconds(secondsLater), SandboxState.RUNNING));
  }

  private static SandboxQuery all(int limit, Optional<String> cursor) {
    return new SandboxQuery(Set.of(), Optional.empty(), Map.of(), limit, cursor);
  }

  @Test
  void a_sandbox_comes_back_as_it_was_written() {
    Sandbox plain = insert("i1", "p", 0);
    Sandbox rich =
        insert(
            Samples.withMetadata(
                Samples.sandbox("i2", "p", NOW, SandboxState.PAUSED),
                Map.of("ключ", "値\n'\"", "b", "")));

    assertThat(store.<Optional<Sandbox>>read(tx -> tx.sandboxes().find("i1"))).contains(plain);
    assertThat(store.<Optional<Sandbox>>read(tx -> tx.sandboxes().find("p", "i2"))).contains(rich);
  }

  @Test
  @DisplayName("behaviour 39: another project's record looks like none")
  void foreign_records_look_missing() {
    insert("i1", "p", 0);
    store.transact(
        tx -> {
          tx.snapshots().insert(Samples.snapshot("p1", "p", "i1"), false);
          tx.templates().insert("p", Samples.template(DIGEST));
          return tx.operations()
              .insert(
                  Samples.operation("o1", "p", Optional.of("i1"), OperationKind.PAUSE, NOW),
                  Map.of());
        });

    store.read(
        tx -> {
          assertThat(tx.sandboxes().find("q", "i1")).isEmpty();
          assertThat(tx.sandboxes().list("q", all(10, Optional.empty())).items()).isEmpty();
          assertThat(tx.snapshots().find("q", "p1")).isEmpty();
          assertThat(tx.operations().find("q", "o1")).isEmpty();
          assertThat(tx.operations().list("q", Optional.of("i1"), 10, Optional.empty()).items())
              .isEmpty();
          assertThat(tx.templates().find("q", new TemplateRef.Digest(DIGEST))).isEmpty();
          return true;
        });
  }

  @Test
  void a_stale_record_is_refused_and_changes_nothing() {
    Sandbox first = insert("i1", "p", 0);
    Sandbox second =
        store.transact(
            tx -> tx.sandboxes().update(Samples.withMetadata(first, Map.of("writer", "second"))));

    assertThat(second.rev()).isEqualTo(first.rev() + 1);
    assertThatThrownBy(() -> store.transact(tx -> tx.sandboxes().update(first)))
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.CONFLICT));
    assertThat(store.<Optional<Sandbox>>read(tx -> tx.sandboxes().find("i1"))).contains(second);
  }

  @Test
  void a_transaction_that_throws_leaves_nothing() {
    assertThatThrownBy(
            () ->
                store.transact(
                    tx -> {
                      tx.sandboxes().insert(Samples.sandbox("i1", "p", NOW, SandboxState.RUNNING));
                      throw Problem.of(ErrorCode.CAPACITY, "no").toException();
                    }))
        .isInstanceOf(SpaceException.class);

    assertThat(store.<Optional<Sandbox>>read(tx -> tx.sandboxes().find("i1"))).isEmpty();
  }

  @Test
  @DisplayName("behaviour 36: a filter that matches nothing returns nothing")
  void filters_hold_together() {
    insert(
        Samples.withMetadata(
            Samples.sandbox("i1", "p", NOW, SandboxState.RUNNING), Map.of("team", "a", "n", "1")));
    insert(
        Samples.withMetadata(
            Samples.sandbox("i2", "p", NOW, SandboxState.PAUSED), Map.of("team", "a")));
    insert(Samples.sandbox("i3", "p", NOW, SandboxState.DELETED));

    assertThat(ids(Set.of(), Optional.empty(), Map.of())).containsExactly("i2", "i1");
    assertThat(ids(Set.of(), Optional.empty(), Map.of("team", "a"))).containsExactly("i2", "i1");
    assertThat(ids(Set.of(), Optional.empty(), Map.of("team", "a", "n", "1")))
        .containsExactly("i1");
    assertThat(ids(Set.of(SandboxState.PAUSED), Optional.empty(), Map.of("team", "a")))
        .containsExactly("i2");
    assertThat(ids(Set.of(), Optional.of("base:latest"), Map.of())).hasSize(2);
    assertThat(ids(Set.of(), Optional.of(DIGEST), Map.of())).hasSize(2);
    assertThat(ids(Set.of(), Optional.of("other:latest"), Map.of())).isEmpty();
    assertThat(ids(Set.of(), Optional.empty(), Map.of("team", "b"))).isEmpty();
    assertThat(ids(Set.of(SandboxState.DELETED), Optional.empty(), Map.of())).isEmpty();
  }

  private List<String> ids(
      Set<SandboxState> states, Optional<String> template, Map<String, String> metadata) {
    return store.read(
        tx ->
            tx
                .sandboxes()
                .list("p", new SandboxQuery(states, template, metadata, 10, Optional.empty()))
                .items()
                .stream()
                .map(Sandbox::id)
                .toList());
  }

  @Test
  void a_metadata_filter_follows_changes() {
    Sandbox sandbox =
        insert(
            Samples.withMetadata(
                Samples.sandbox("i1", "p", NOW, SandboxState.RUNNING), Map.of("a", "1")));

    store.transact(tx -> tx.sandboxes().update(Samples.withMetadata(sandbox, Map.of("b", "2"))));

    assertThat(ids(Set.of(), Optional.empty(), Map.of("a", "1"))).isEmpty();
    assertThat(ids(Set.of(), Optional.empty(), Map.of("b", "2"))).containsExactly("i1");
  }

  @Test
  @DisplayName("behaviour 36: lists are complete and ordered under concurrent change")
  void pages_miss_and_repeat_nothing_under_change() {
    List<String> expected = new ArrayList<>();
    for (int i = 0; i < 25; i++) {
      insert("i%02d".formatted(i), "p", i / 3); // several in one millisecond
      expected.addFirst("i%02d".formatted(i));
    }
    List<String> seen = new ArrayList<>();
    Optional<String> cursor = Optional.empty();
    int newer = 0;
    do {
      Optional<String> from = cursor;
      Page<Sandbox> page = store.read(tx -> tx.sandboxes().list("p", all(4, from)));
      page.items().forEach(s -> seen.add(s.id()));
      insert("new" + newer++, "p", 1000);
      cursor = page.next();
    } while (cursor.isPresent());

    assertThat(seen).isEqualTo(expected);
  }

  @Test
  void a_made_up_cursor_and_an_absurd_limit_are_refused() {
    for (SandboxQuery query :
        List.of(
            all(10, Optional.of("%%%")), all(0, Optional.empty()), all(1001, Optional.empty()))) {
      assertThatThrownBy(() -> store.read(tx -> tx.sandboxes().list("p", query)))
          .isInstanceOfSatisfying(
              SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_REQUEST));
    }
  }

  @Test
  void counts_leave_tombstones_out_and_purge_forgets_old_ones() {
    insert("i1", "p", 0);
    insert(Samples.sandbox("i2", "p", NOW, SandboxState.DELETED));
    insert(Samples.sandbox("i3", "p", NOW.plusSeconds(100), SandboxState.DELETED));

    store.transact(
        tx -> {
          assertThat(tx.sandboxes().counts()).isEqualTo(Map.of(SandboxState.RUNNING, 1L));
          assertThat(tx.sandboxes().purgeDeletedBefore(NOW.plusSeconds(50))).isEqualTo(1);
          assertThat(tx.sandboxes().find("i2")).isEmpty();
          assertThat(tx.sandboxes().find("i3")).isPresent();
          assertThat(tx.sandboxes().anyOfTemplate(DIGEST)).isTrue();
          assertThat(tx.sandboxes().anyOfTemplate("sha256:other")).isFalse();
          return true;
        });
  }

  @Test
  void operations_keep_their_intent_and_their_order() {
    store.transact(
        tx -> {
          for (String id : List.of("o3", "o1", "o2")) { // one millisecond, ids out of order
            tx.operations()
                .insert(
                    Samples.operation(id, "p", Optional.of("i1"), OperationKind.PAUSE, NOW),
                    Map.of("n", id));
          }
          return true;
        });
    Operation first = store.read(tx -> tx.operations().find("p", "o3").orElseThrow());
    Operation done =
        new Operation(
            first.id(),
            first.project(),
            first.kind(),
            first.sandboxId(),
            OperationState.FAILED,
            Optional.of("step"),
            Optional.of(Problem.of(ErrorCode.VMM_FAILED, "no").because("why").remedy("do")),
            List.of("x", "y"),
            NOW,
            Optional.of(NOW.plusSeconds(1)),
            Optional.of(NOW.plusSeconds(2)),
            first.rev());

    store.transact(
        tx -> {
          assertThat(tx.operations().open("i1"))
              .extracting(Operation::id)
              .containsExactly("o3", "o1", "o2");
          assertThat(tx.operations().intent("o3")).isEqualTo(Map.of("n", "o3"));
          tx.operations().intend("o3", Map.of("n", "new"));
          Operation updated = tx.operations().update(done);
          assertThat(tx.operations().find("o3")).contains(updated);
          assertThat(tx.operations().intent("o3")).isEqualTo(Map.of("n", "new"));
          assertThat(tx.operations().open()).extracting(Operation::id).containsExactly("o1", "o2");
          assertThat(tx.operations().latest("i1", OperationKind.PAUSE).orElseThrow().id())
              .isEqualTo("o2");
          assertThat(tx.operations().latest("i1", OperationKind.DELETE)).isEmpty();
          assertThat(tx.operations().purgeEndedBefore(NOW.plusSeconds(3))).isEqualTo(1);
          assertThat(tx.operations().find("o3")).isEmpty();
          assertThat(tx.operations().list("p", Optional.empty(), 1, Optional.empty()).next())
              .isPresent();
          return true;
        });
  }

  @Test
  void sessions_come_back_as_they_were_written() {
    ProcessSpec spec =
        new ProcessSpec(
            "s1",
            List.of("echo", "a b", ""),
            Map.of("X", "y"),
            Optional.of("/tmp"),
            Optional.empty(),
            true,
            Optional.of(new ProcessSpec.PtySize(80, 24)),
            Optional.of(Duration.ofMillis(2500)),
            "tag",
            true);
    Session session =
        new Session(
            "s1",
            "p",
            "i1",
            spec,
            true,
            SessionState.RUNNING,
            Optional.of(42),
            Optional.empty(),
            Optional.empty(),
            true,
            3,
            NOW,
            Optional.of(NOW),
            Optional.empty(),
            1);
    Session exited =
        new Session(
            "s1",
            "p",
            "i1",
            spec,
            true,
            SessionState.EXITED,
            Optional.of(42),
            Optional.of(new ProcessExit(-1, 9, true, false)),
            Optional.empty(),
            true,
            3,
            NOW,
            Optional.of(NOW),
            Optional.of(NOW.plusSeconds(1)),
            1);

    store.transact(
        tx -> {
          tx.sessions().insert(session);
          assertThat(tx.sessions().find("p", "i1", "s1")).contains(session);
          assertThat(tx.sessions().find("p", "i2", "s1")).isEmpty();
          assertThat(tx.sessions().find("q", "i1", "s1")).isEmpty();
          assertThat(tx.sessions().open("i1")).containsExactly(session);
          Session updated = tx.sessions().update(exited);
          assertThat(tx.sessions().find("s1")).contains(updated);
          assertThat(tx.sessions().open()).isEmpty();
          assertThat(tx.sessions().list("p", "i1", 10, Optional.empty()).items()).hasSize(1);
          assertThat(tx.sessions().deleteAll("i1")).isEqualTo(1);
          return true;
        });
  }

  @Test
  void a_tag_moves_and_goes_with_its_template() {
    String other = "sha256:" + "b".repeat(64);
    TemplateRef.Tagged latest = new TemplateRef.Tagged("base", "latest");
    TemplateRef.Tagged old = new TemplateRef.Tagged("base", "old");
    store.transact(
        tx -> {
          tx.templates().insert("p", Samples.template(DIGEST));
          tx.templates().insert("p", Samples.template(DIGEST));
          tx.templates().insert("p", Samples.template(other));
          tx.templates().tag("p", latest, DIGEST);
          tx.templates().tag("p", old, DIGEST);
          tx.templates().tag("p", latest, other);
          return true;
        });

    store.transact(
        tx -> {
          Template found = tx.templates().find("p", latest).orElseThrow();
          assertThat(found.digest()).isEqualTo(other);
          assertThat(found.tags()).containsExactly("base:latest");
          assertThat(found.defaults()).isEqualTo(Samples.template(other).defaults());
          assertThat(tx.templates().list("p", 10, Optional.empty()).items()).hasSize(2);
          assertThat(tx.templates().tagged("p", "base")).hasSize(2);
          assertThat(tx.templates().delete("p", other)).isTrue();
          assertThat(tx.templates().find("p", latest)).isEmpty();
          assertThat(tx.templates().anyOf(other)).isFalse();
          assertThat(tx.templates().anyOf(DIGEST)).isTrue();
          assertThat(tx.templates().untag("p", old)).isTrue();
          assertThat(tx.templates().untag("p", old)).isFalse();
          return true;
        });
  }

  @Test
  void internal_snapshots_are_hidden_from_callers() {
    store.transact(
        tx -> {
          tx.snapshots().insert(Samples.snapshot("p1", "p", "i1"), false);
          tx.snapshots().insert(Samples.snapshot("p2", "p", "i1"), true);
          assertThat(tx.snapshots().find("p", "p1")).contains(Samples.snapshot("p1", "p", "i1"));
          assertThat(tx.snapshots().find("p", "p2")).isEmpty();
          assertThat(tx.snapshots().find("p2")).isPresent();
          assertThat(tx.snapshots().list("p", Optional.of("i1"), 10, Optional.empty()).items())
              .hasSize(1);
          assertThat(tx.snapshots().internal()).hasSize(1);
          assertThat(tx.snapshots().anyOfTemplate(DIGEST)).isTrue();
          assertThat(tx.snapshots().delete("p2")).isTrue();
          assertThat(tx.snapshots().delete("p2")).isFalse();
          return true;
        });
  }

  @Test
  void events_are_numbered_followed_and_trimmed() {
    store.transact(
        tx -> {
          for (int i = 0; i < 5; i++) {
            tx.events()
                .append(
                    i % 2 == 0 ? "p" : "q",
                    NOW,
                    "sandbox.running",
                    Optional.of("i" + i),
                    Optional.empty(),
                    Map.of("n", "" + i));
          }
          assertThat(tx.events().after("p", 0, 10))
              .extracting(LifecycleEvent::seq)
              .containsExactly(1L, 3L, 5L);
          assertThat(tx.events().after("p", 1, 1))
              .extracting(LifecycleEvent::seq)
              .containsExactly(3L);
          tx.events().trim(2);
          assertThat(tx.events().after("p", 0, 10))
              .extracting(LifecycleEvent::seq)
              .containsExactly(5L);
          assertThat(tx.events().last()).isEqualTo(5);
          return true;
        });
  }

  @Test
  void keys_settings_and_idempotency_keys() {
    StoredKey key = new StoredKey("k1", "p", "mine", "admin", "hash", NOW, Optional.empty());
    store.transact(
        tx -> {
          assertThat(tx.keys().any()).isFalse();
          tx.keys().insert(key);
          assertThat(tx.keys().any()).isTrue();
          assertThat(tx.keys().byHash("hash")).contains(key);
          assertThat(tx.keys().byHash("other")).isEmpty();
          assertThat(tx.keys().list("p")).containsExactly(key);
          assertThat(tx.keys().revoke("q", "k1", NOW)).isFalse();
          assertThat(tx.keys().revoke("p", "k1", NOW)).isTrue();
          assertThat(tx.keys().revoke("p", "k1", NOW)).isFalse();
          assertThat(tx.keys().byHash("hash").orElseThrow().revokedAt()).contains(NOW);

          tx.settings().put("a", "1");
          tx.settings().put("a", "2");
          assertThat(tx.settings().find("a")).contains("2");
          assertThat(tx.settings().find("b")).isEmpty();

          tx.idempotency().put("p", new IdempotencyKey("k", "f1"), "o1", NOW);
          assertThat(tx.idempotency().find("p", "k").orElseThrow().resultId()).isEqualTo("o1");
          assertThat(tx.idempotency().find("q", "k")).isEmpty();
          assertThat(tx.idempotency().purgeBefore(NOW)).isZero();
          assertThat(tx.idempotency().purgeBefore(NOW.plusMillis(1))).isEqualTo(1);
          return true;
        });
  }

  @Test
  void writers_on_many_threads_lose_no_update() throws Exception {
    insert("i1", "p", 0);
    Set<Long> seqs = new HashSet<>();
    try (var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<Long>> answers = new ArrayList<>();
      for (int i = 0; i < 100; i++) {
        answers.add(
            threads.submit(
                () ->
                    store.transact(
                        tx -> {
                          Sandbox s = tx.sandboxes().find("i1").orElseThrow();
                          int n = Integer.parseInt(s.metadata().getOrDefault("n", "0"));
                          tx.sandboxes().update(Samples.withMetadata(s, Map.of("n", "" + (n + 1))));
                          return tx.events()
                              .append("p", NOW, "x", Optional.empty(), Optional.empty(), Map.of())
                              .seq();
                        })));
      }
      for (Future<Long> answer : answers) {
        seqs.add(answer.get());
      }
    }

    assertThat(seqs).hasSize(100);
    Sandbox last = store.read(tx -> tx.sandboxes().find("i1").orElseThrow());
    assertThat(last.metadata()).containsEntry("n", "100");
  }
}
