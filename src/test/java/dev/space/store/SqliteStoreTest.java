package dev.space.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.Samples;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.sandbox.SandboxState;
import dev.space.core.store.Store;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.DriverManager;
import java.util.Optional;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SqliteStoreTest extends StoreContractTest {

  @TempDir private Path directory;

  @Override
  Store open() {
    return SqliteStore.open(directory.resolve("data"));
  }

  private static void refused(Path data, ErrorCode code, String... words) {
    assertThatThrownBy(() -> SqliteStore.open(data).close())
        .isInstanceOfSatisfying(
            SpaceException.class,
            e -> {
              assertThat(e.code()).isEqualTo(code);
              assertThat(e.problem().remedy()).isPresent();
              assertThat(e.problem().oneLine()).contains(words);
            });
  }

  @Test
  void what_was_written_is_there_after_a_reopen() {
    Path data = directory.resolve("again");
    try (Store store = SqliteStore.open(data)) {
      store.transact(
          tx ->
              tx.sandboxes().insert(Samples.sandbox("i1", "p", Samples.NOW, SandboxState.RUNNING)));
    }
    try (Store store = SqliteStore.open(data)) {
      boolean there = store.read(tx -> tx.sandboxes().find("i1").isPresent());
      assertThat(there).isTrue();
    }
  }

  @Test
  void a_directory_of_a_newer_version_is_refused() throws Exception {
    Path data = directory.resolve("newer");
    SqliteStore.open(data).close();
    try (var connection =
            DriverManager.getConnection("jdbc:sqlite:" + data.resolve(SqliteStore.FILE_NAME));
        var statement = connection.createStatement()) {
      statement.executeUpdate(
          """
          INSERT INTO flyway_schema_history (installed_rank, version, description, type, script,
            checksum, installed_by, execution_time, success)
          VALUES (99, '99', 'later', 'SQL', 'V99__later.sql', 1, '', 1, 1)""");
    }

    refused(data, ErrorCode.PREREQUISITE_MISSING, "newer version");
  }

  @Test
  void a_file_that_is_no_database_is_refused() throws IOException {
    Path data = Files.createDirectories(directory.resolve("broken"));
    Files.writeString(data.resolve(SqliteStore.FILE_NAME), "not a database ".repeat(1000));

    refused(data, ErrorCode.PREREQUISITE_MISSING, "can't be used");
  }

  @Test
  void a_directory_that_can_not_be_made_is_refused() throws IOException {
    Path file = Files.writeString(directory.resolve("file"), "");

    refused(file.resolve("data"), ErrorCode.PREREQUISITE_MISSING, "can't be used");
  }

  @Test
  void reads_can_not_write() {
    try (Store store = SqliteStore.open(directory.resolve("reads"))) {
      assertThatThrownBy(
              () ->
                  store.read(
                      tx -> {
                        tx.settings().put("a", "b");
                        return true;
                      }))
          .isInstanceOf(SpaceException.class);
    }
  }

  @Test
  @DisplayName("behaviour 46: a full data disk is a clear error and harms nothing")
  void a_full_disk_is_told_and_harms_nothing() {
    try (Store store = SqliteStore.open(directory.resolve("full"), Optional.of(80))) {
      assertThatThrownBy(
              () -> {
                for (int i = 0; i < 1000; i++) {
                  String name = "n" + i;
                  store.transact(
                      tx -> {
                        tx.settings().put(name, "x".repeat(1000));
                        return true;
                      });
                }
              })
          .isInstanceOfSatisfying(
              SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.DISK_FULL));
      assertThat(store.<Optional<String>>read(tx -> tx.settings().find("n0"))).isPresent();
    }
  }
}
