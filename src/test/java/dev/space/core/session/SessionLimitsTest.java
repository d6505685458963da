package dev.space.core.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.space.core.Ids;
import dev.space.core.Samples;
import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessExit;
import dev.space.core.store.Store;
import dev.space.node.log.DiskOutputLogs;
import dev.space.node.log.LogBounds;
import dev.space.store.SqliteStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What bounds sessions, and what happens when the disk of their logs is full.
class SessionLimitsTest {

  private static final Caller CALLER = new Caller("p", "k1", "r1");
  private static final String BOX = "i0000000000000000001";

  @TempDir private Path root;
  private final FakeHost host = new FakeHost();
  private final ScriptedGuest guest = new ScriptedGuest();
  private volatile Instant now = Samples.NOW;
  private volatile boolean full;
  private Store store = noStore();
  private SessionService sessions = noService();

  @SuppressWarnings("NullAway") // Set before each test.
  private static Store noStore() {
    return null;
  }

  @SuppressWarnings("NullAway") // Set before each test.
  private static SessionService noService() {
    return null;
  }

  @BeforeEach
  void open() {
    host.add(BOX, guest);
    store = SqliteStore.open(root.resolve("data"));
    sessions =
        new SessionService(
            host,
            store,
            new FillingLogs(new DiskOutputLogs(root.resolve("sessions"), LogBounds.DEFAULT)),
            new AttachmentToken(new byte[AttachmentToken.KEY_BYTES]),
            (InstantSource) () -> now,
            new Ids(new SecureRandom()),
            Duration.ofHours(1));
  }

  @AfterEach
  void close() {
    sessions.close();
    store.close();
  }

  /// Logs whose disk is full while the test says so.
  private final class FillingLogs implements OutputLogs {
    private final OutputLogs logs;

    FillingLogs(OutputLogs logs) {
      this.logs = logs;
    }

    @Override
    public OutputLog open(String sandboxId, String sessionId) {
      return new FillingLog(logs.open(sandboxId, sessionId));
    }

    @Override
    public int epoch(String sandboxId, String sessionId) {
      return logs.epoch(sandboxId, sessionId);
    }

    @Override
    public void epoch(String sandboxId, String sessionId, int epoch) {
      logs.epoch(sandboxId, sessionId, epoch);
    }

    @Override
    public void delete(String sandboxId, String sessionId) {
      logs.delete(sandboxId, sessionId);
    }

    @Override
    public void delete(String sandboxId) {
      logs.delete(sandboxId);
    }
  }

  private final class FillingLog implements OutputLog {
    private final OutputLog log;

    FillingLog(OutputLog log) {
      this.log = log;
    }

    @Override
    public long durableSeq() {
      return log.durableSeq();
    }

    @Override
    public long lastSeq() {
      return log.lastSeq();
    }

    @Override
    public Optional<ProcessExit> exit() {
      return log.exit();
    }

    @Override
    public void append(OutputEvent event) throws InterruptedException {
      room();
      log.append(event);
    }

    @Override
    public void flush() {
      room();
      log.flush();
    }

    private void room() {
      if (full) {
        throw Problem.of(ErrorCode.DISK_FULL, "The disk is full.").toException();
      }
    }

    @Override
    public void end() {
      log.end();
    }

    @Override
    public void wake() {
      log.wake();
    }

    @Override
    public Reader reader(long afterSeq) {
      return log.reader(afterSeq);
    }

    @Override
    public void close() {
      log.close();
    }
  }

  private Session run(boolean keep) {
    var request =
        new CreateSession(
            new CreateSession.Command.Argv(List.of("run")),
            Map.of(),
            Optional.empty(),
            Optional.empty(),
            false,
            Optional.empty(),
            Optional.empty(),
            Optional.empty(),
            true,
            keep);
    return sessions.create(CALLER, BOX, request, Optional.empty()).session();
  }

  private SessionState state(Session session) {
    return sessions.get(CALLER, BOX, session.id()).state();
  }

  @Test
  @DisplayName("a start whose sandbox is put away under it is tried again, but not for ever")
  void a_start_outlives_a_suspend() {
    guest.refusals.addAll(List.of(ErrorCode.ILLEGAL_STATE, ErrorCode.GUEST_UNREACHABLE));
    assertThat(
            sessions
                .create(CALLER, BOX, Wanted.started(Wanted.argv("run")), Optional.empty())
                .session())
        .extracting(Session::state)
        .isEqualTo(SessionState.RUNNING);
    guest.refusals.addAll(java.util.Collections.nCopies(3, ErrorCode.ILLEGAL_STATE));
    assertThatThrownBy(
            () ->
                sessions.create(CALLER, BOX, Wanted.started(Wanted.argv("run")), Optional.empty()))
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.ILLEGAL_STATE));
    assertThat(guest.starts).isEqualTo(1);
  }

  @Test
  @DisplayName("behaviour 46: a full disk holds output up, loses none of it and no exit")
  void fullDisk() {
    Session session = run(false);
    guest.process(session.id()).write("before\n");
    full = true;
    guest.process(session.id()).write("while full\n");
    guest.process(session.id()).exit(3);
    await().during(Duration.ofMillis(200)).until(() -> state(session) == SessionState.RUNNING);
    full = false;
    await().until(() -> state(session) == SessionState.EXITED);
    assertThat(sessions.get(CALLER, BOX, session.id()).exit().map(ProcessExit::code)).contains(3);
    await().until(() -> sessions.open() == 0);
    assertThat(store.<Optional<Session>>read(tx -> tx.sessions().find(session.id())))
        .map(Session::state)
        .contains(SessionState.EXITED);
  }

  @Test
  void ended_sessions_go_by_age_and_those_marked_stay() {
    Session plain = run(false);
    Session kept = run(true);
    Session running = run(false);
    for (Session session : List.of(plain, kept)) {
      guest.process(session.id()).exit(0);
      await().until(() -> state(session) == SessionState.EXITED);
    }
    await().until(() -> sessions.open() == 1);
    Path log = root.resolve("sessions").resolve(BOX).resolve(plain.id());
    assertThat(log).isDirectory();
    now = now.plus(SessionRetention.ENDED_AGE_MAX).plusSeconds(1);
    sessions.recover();
    assertThat(Files.exists(log)).isFalse();
    assertThat(sessions.list(CALLER, BOX, 10, Optional.empty()).items())
        .extracting(Session::id)
        .containsExactlyInAnyOrder(kept.id(), running.id());
  }

  @Test
  void ended_sessions_go_by_number_and_those_marked_have_their_own() {
    Session kept = run(true);
    Session one = run(false);
    for (Session session : List.of(kept, one)) {
      guest.process(session.id()).exit(0);
      await().until(() -> state(session) == SessionState.EXITED);
    }
    await().until(() -> sessions.open() == 0);
    Session ended = store.<Optional<Session>>read(tx -> tx.sessions().find(one.id())).orElseThrow();
    store.transact(
        tx -> {
          for (int i = 1; i <= SessionRetention.ENDED_MAX; i++) {
            tx.sessions().insert(ended(ended, "e%019d".formatted(i), i));
          }
          return true;
        });
    // How many there are is looked at now and then.
    for (int i = 0; i < 70; i++) {
      run(false);
    }
    assertThat(plainEnded())
        .as("the oldest went")
        .hasSize(SessionRetention.ENDED_MAX)
        .doesNotContain(one.id());
    assertThat(state(kept)).isEqualTo(SessionState.EXITED);
    assertThat(Files.exists(root.resolve("sessions").resolve(BOX).resolve(one.id()))).isFalse();
  }

  private Set<String> plainEnded() {
    Set<String> ids = new HashSet<>();
    Optional<String> cursor = Optional.empty();
    do {
      var page = sessions.list(CALLER, BOX, 1000, cursor);
      page.items().stream()
          .filter(s -> !s.keep() && s.state().isTerminal())
          .forEach(s -> ids.add(s.id()));
      cursor = page.next();
    } while (cursor.isPresent());
    return ids;
  }

  /// Another session that ended as one did, and some milliseconds later.
  private static Session ended(Session s, String id, int millis) {
    return new Session(
        id,
        s.project(),
        s.sandboxId(),
        s.spec(),
        s.shell(),
        s.state(),
        s.pid(),
        s.exit(),
        s.error(),
        s.keep(),
        0,
        s.createdAt().plusMillis(millis),
        s.startedAt().map(at -> at.plusMillis(millis)),
        s.endedAt().map(at -> at.plusMillis(millis)),
        1);
  }

  @Test
  void a_sandbox_has_a_bounded_number_of_open_sessions() {
    Session one = run(false);
    store.transact(
        tx -> {
          for (int i = 1; i < SessionRecords.OPEN_MAX; i++) {
            tx.sessions().insert(copy(one, "s%019d".formatted(i)));
          }
          return true;
        });
    assertThatThrownBy(() -> run(false))
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.TOO_MANY_REQUESTS));
  }

  private static Session copy(Session s, String id) {
    return new Session(
        id,
        s.project(),
        s.sandboxId(),
        s.spec(),
        s.shell(),
        SessionState.CREATED,
        Optional.empty(),
        Optional.empty(),
        Optional.empty(),
        s.keep(),
        0,
        s.createdAt(),
        Optional.empty(),
        Optional.empty(),
        1);
  }
}
