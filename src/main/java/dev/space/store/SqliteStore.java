package dev.space.store;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.store.Store;
import dev.space.core.store.Tx;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Arrays;
import java.util.Optional;
import java.util.function.Function;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.FlywayException;
import org.flywaydb.core.api.MigrationState;
import org.jdbi.v3.core.Jdbi;
import org.jdbi.v3.core.JdbiException;
import org.sqlite.SQLiteErrorCode;
import org.sqlite.SQLiteException;

/// The store in one SQLite file, WAL mode. One connection writes, others read beside it; a
/// transaction is on the disk (`synchronous=FULL`) before [#transact] returns.
public final class SqliteStore implements Store {

  /// The file's name in the data directory.
  public static final String FILE_NAME = "space.db";

  /// How often a transaction runs again when another writer got in between.
  private static final int ATTEMPTS = 5;

  private static final int READERS = 4;

  /// How long a caller waits for its turn to write or read.
  private static final Duration TURN_WAIT = Duration.ofSeconds(30);

  private static final Duration BUSY_TIMEOUT = Duration.ofSeconds(10);

  private final Path file;
  private final HikariDataSource writer;
  private final HikariDataSource readers;
  private final Jdbi writing;
  private final Jdbi reading;

  private SqliteStore(Path file, HikariDataSource writer, HikariDataSource readers) {
    this.file = file;
    this.writer = writer;
    this.readers = readers;
    this.writing = Jdbi.create(writer);
    this.reading = Jdbi.create(readers);
  }

  /// Opens the store in a data directory, making or migrating its file.
  ///
  /// @throws SpaceException PREREQUISITE_MISSING when the directory can't be written or was written
  ///   by a newer version, DISK_FULL when there is no room
  public static SqliteStore open(Path dataDirectory) {
    return open(dataDirectory, Optional.empty());
  }

  /// The same with a limit on the file's size, as a full disk would be.
  ///
  /// @param pagesMax pages of 4096 bytes
  static SqliteStore open(Path dataDirectory, Optional<Integer> pagesMax) {
    Path file = dataDirectory.resolve(FILE_NAME);
    try {
      Files.createDirectories(dataDirectory);
    } catch (IOException e) {
      throw unusable(file, e);
    }
    HikariDataSource writer = null;
    HikariDataSource readers = null;
    try {
      String init = pagesMax.map(n -> "PRAGMA max_page_count = " + n).orElse("SELECT 1");
      writer = pool(file, "store-writer", 1, "IMMEDIATE", init);
      migrate(writer, file);
      readers = pool(file, "store-readers", READERS, "DEFERRED", "PRAGMA query_only = true");
      return new SqliteStore(file, writer, readers);
    } catch (RuntimeException e) {
      if (readers != null) {
        readers.close();
      }
      if (writer != null) {
        writer.close();
      }
      if (e instanceof SpaceException known) {
        throw known;
      }
      throw sqlite(e).filter(s -> isFull(s)).isPresent() ? full(file, e) : unusable(file, e);
    }
  }

  private static HikariDataSource pool(
      Path file, String name, int size, String transactionMode, String init) {
    HikariConfig config = new HikariConfig();
    config.setPoolName(name);
    config.setJdbcUrl(
        "jdbc:sqlite:%s?journal_mode=WAL&synchronous=FULL&busy_timeout=%d&transaction_mode=%s"
            .formatted(file, BUSY_TIMEOUT.toMillis(), transactionMode));
    config.setMaximumPoolSize(size);
    config.setMinimumIdle(1);
    config.setConnectionTimeout(TURN_WAIT.toMillis());
    config.setMaxLifetime(0);
    config.setConnectionInitSql(init);
    return new HikariDataSource(config);
  }

  private static void migrate(HikariDataSource source, Path file) {
    Flyway flyway =
        Flyway.configure().dataSource(source).locations("classpath:db/migration").load();
    boolean newer =
        Arrays.stream(flyway.info().all())
            .map(info -> info.getState())
            .anyMatch(s -> s == MigrationState.FUTURE_SUCCESS || s == MigrationState.FUTURE_FAILED);
    if (newer) {
      throw Problem.of(
              ErrorCode.PREREQUISITE_MISSING,
              "the data directory " + file.getParent() + " was written by a newer version")
          .because(file.getFileName() + " has changes that this version doesn't know")
          .remedy("Run that version or a later one, or give another data directory.")
          .toException();
    }
    try {
      flyway.migrate();
    } catch (FlywayException e) {
      throw sqlite(e).filter(s -> isFull(s)).isPresent() ? full(file, e) : unusable(file, e);
    }
  }

  @Override
  public <T> T transact(Function<Tx, T> work) {
    for (int attempt = 1; ; attempt++) {
      try {
        return run(writing, work);
      } catch (StaleRow e) {
        if (attempt == ATTEMPTS) {
          throw Problem.of(ErrorCode.CONFLICT, "the record was changed by someone else meanwhile")
              .remedy("Read it again and repeat the call.")
              .toException(e);
        }
      }
    }
  }

  @Override
  public <T> T read(Function<Tx, T> work) {
    return run(reading, work);
  }

  private <T> T run(Jdbi jdbi, Function<Tx, T> work) {
    try {
      return jdbi.inTransaction(handle -> work.apply(SqlTx.over(new Sql(handle))));
    } catch (JdbiException e) {
      throw translate(e);
    }
  }

  private SpaceException translate(JdbiException e) {
    Optional<SQLiteException> sqlite = sqlite(e);
    if (sqlite.filter(s -> isFull(s)).isPresent()) {
      return full(file, e);
    }
    String why = sqlite.map(s -> s.getResultCode().name()).orElse(e.getClass().getSimpleName());
    return Problem.of(ErrorCode.INTERNAL, "the store failed").because(why).toException(e);
  }

  private static Optional<SQLiteException> sqlite(Throwable e) {
    for (Throwable t = e; t != null; t = t.getCause()) {
      if (t instanceof SQLiteException found) {
        return Optional.of(found);
      }
    }
    return Optional.empty();
  }

  private static boolean isFull(SQLException e) {
    return (e.getErrorCode() & 0xff) == SQLiteErrorCode.SQLITE_FULL.code;
  }

  private static SpaceException full(Path file, Throwable source) {
    return Problem.of(ErrorCode.DISK_FULL, "the data disk is full; nothing was recorded")
        .because("no room for " + file)
        .remedy("Free space on that file system; what runs is not harmed meanwhile.")
        .toException(source);
  }

  private static SpaceException unusable(Path file, Throwable source) {
    String why = sqlite(source).map(Throwable::getMessage).orElse(String.valueOf(source));
    return Problem.of(ErrorCode.PREREQUISITE_MISSING, "the data file " + file + " can't be used")
        .because(why)
        .remedy("Make the directory writable for this user, or give another data directory.")
        .toException(source);
  }

  @Override
  public void close() {
    readers.close();
    writer.close();
  }
}
