package dev.space.core.access;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.Ids;
import dev.space.core.ManualClock;
import dev.space.core.Samples;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.store.Store;
import dev.space.core.store.Tx;
import dev.space.store.SqliteStore;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ApiKeysTest {

  @TempDir private Path directory;
  private Store store;
  private ApiKeys keys;

  @BeforeEach
  void open() {
    store = SqliteStore.open(directory);
    SecureRandom random = new SecureRandom();
    keys = new ApiKeys(store, new Ids(random), random, new ManualClock(Samples.NOW));
  }

  @AfterEach
  void close() {
    store.close();
  }

  private void unknown(String key) {
    assertThatThrownBy(() -> keys.authenticate(key, "r"))
        .isInstanceOfSatisfying(
            SpaceException.class,
            e -> {
              assertThat(e.code()).isEqualTo(ErrorCode.UNAUTHENTICATED);
              if (key.length() > 8) {
                assertThat(e.problem().toString()).doesNotContain(key);
              }
            });
  }

  @Test
  void a_key_opens_its_project_until_it_is_revoked() {
    ApiKeys.Created created = keys.create("p", "mine");
    assertThat(created.secret()).matches("e2b_[0-9a-f]{40}");
    assertThat(created.toString()).doesNotContain(created.secret());

    Caller caller = keys.authenticate(created.secret(), "r1");
    assertThat(caller).isEqualTo(new Caller("p", created.key().id(), "r1"));
    assertThatThrownBy(() -> keys.revoke(new Caller("q", "k", "r"), created.key().id()))
        .isInstanceOf(SpaceException.class);
    keys.revoke(caller, created.key().id());
    unknown(created.secret());
  }

  @Test
  void a_revocation_wins_over_a_lookup_that_was_under_way() {
    ApiKeys.Created created = keys.create("p", "mine");
    AtomicReference<Runnable> meanwhile = new AtomicReference<>(() -> {});
    Store slow = new SlowStore(store, meanwhile);
    SecureRandom random = new SecureRandom();
    ApiKeys others = new ApiKeys(slow, new Ids(random), random, new ManualClock(Samples.NOW));
    Caller owner = new Caller("p", "k", "r");
    meanwhile.set(() -> others.revoke(owner, created.key().id()));

    others.authenticate(created.secret(), "came before");
    assertThatThrownBy(() -> others.authenticate(created.secret(), "came after"))
        .isInstanceOf(SpaceException.class);
  }

  /// Does something between a read and its answer, once.
  private record SlowStore(Store store, AtomicReference<Runnable> meanwhile) implements Store {
    @Override
    public <T> T transact(Function<Tx, T> work) {
      return store.transact(work);
    }

    @Override
    public <T> T read(Function<Tx, T> work) {
      T found = store.read(work);
      meanwhile.getAndSet(() -> {}).run();
      return found;
    }

    @Override
    public void close() {
      store.close();
    }
  }

  @Test
  void anything_else_opens_nothing() {
    String secret = keys.create("p", "mine").secret();
    for (String key :
        new String[] {
          "",
          "e2b_",
          secret.substring(1),
          secret + "0",
          secret.toUpperCase(),
          "e2b_" + "0".repeat(40),
          secret + "\n"
        }) {
      unknown(key);
    }
  }

  @Test
  void only_the_first_start_makes_a_key() {
    ApiKeys.Created first = keys.bootstrap(_ -> {}).orElseThrow();
    assertThat(first.key().project()).isEqualTo(Caller.DEFAULT_PROJECT);
    assertThat(keys.authenticate(first.secret(), "r").project()).isEqualTo(Caller.DEFAULT_PROJECT);
    assertThat(keys.bootstrap(_ -> {})).isEmpty();
  }

  @Test
  void there_is_no_first_key_whose_secret_nobody_has() {
    assertThatThrownBy(
            () ->
                keys.bootstrap(
                    _ -> {
                      throw new IllegalStateException("the disk is full");
                    }))
        .isInstanceOf(IllegalStateException.class);
    assertThat(keys.bootstrap(_ -> {})).isPresent();
  }

  @Test
  void the_secret_is_nowhere_on_the_disk() throws IOException {
    String secret = keys.create("p", "mine").secret();
    try (Stream<Path> files = Files.list(directory)) {
      for (Path file : files.toList()) {
        assertThat(new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1))
            .doesNotContain(secret.substring(4));
      }
    }
  }

  @Test
  void ids_have_their_form_and_do_not_repeat() {
    Ids ids = new Ids(new SecureRandom());
    Set<String> seen = new HashSet<>();
    for (Ids.Kind kind : Ids.Kind.values()) {
      for (int i = 0; i < 1000; i++) {
        String id = ids.next(kind);
        assertThat(id).matches(kind.letter() + "[a-z0-9]{19}");
        assertThat(seen.add(id)).isTrue();
      }
    }
  }
}
