package dev.space.core.session;

import static dev.space.core.session.Wanted.argv;
import static dev.space.core.session.Wanted.request;
import static dev.space.core.session.Wanted.started;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.space.core.Ids;
import dev.space.core.Samples;
import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest.SignalScope;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.OutputEvent.Stream;
import dev.space.core.guest.ProcessExit;
import dev.space.core.guest.ProcessSpec.PtySize;
import dev.space.core.operation.IdempotencyKey;
import dev.space.core.sandbox.SandboxState;
import dev.space.core.session.CreateSession.Command;
import dev.space.core.store.Store;
import dev.space.node.log.DiskOutputLogs;
import dev.space.node.log.LogBounds;
import dev.space.store.SqliteStore;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SessionServiceTest {

  private static final Duration TOKEN_LIFE = Duration.ofHours(1);
  private static final Caller CALLER = new Caller("p", "k1", "r1");
  private static final String BOX = "i0000000000000000001";
  private static final Optional<IdempotencyKey> NO_KEY = Optional.empty();

  @TempDir private Path root;
  private final FakeHost host = new FakeHost();
  private final ScriptedGuest guest = new ScriptedGuest();
  private volatile Instant now = Samples.NOW;
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
    sessions = service();
  }

  private SessionService service() {
    return new SessionService(
        host,
        store,
        new DiskOutputLogs(root.resolve("sessions"), LogBounds.DEFAULT),
        new AttachmentToken(new byte[AttachmentToken.KEY_BYTES]),
        (InstantSource) () -> now,
        new Ids(new SecureRandom()),
        TOKEN_LIFE);
  }

  @AfterEach
  void close() {
    sessions.close();
    store.close();
  }

  private void restartDaemon() {
    sessions.close();
    sessions = service();
    sessions.recover();
  }

  private SessionTicket create() {
    return sessions.create(CALLER, BOX, request(argv("run")), NO_KEY);
  }

  private SessionService.Attachment attach(SessionTicket ticket) {
    return sessions.attach(ticket.session().id(), ticket.token());
  }

  /// Reads to the end on a thread of its own.
  private final class Following {
    final List<OutputEvent> events = new CopyOnWriteArrayList<>();
    final CompletableFuture<Void> done = new CompletableFuture<>();

    Following(SessionTicket ticket, long after) {
      Thread _ =
          Thread.ofVirtual()
              .start(
                  () -> {
                    try {
                      attach(ticket).read(after, events::addAll);
                      done.complete(null);
                    } catch (Throwable t) {
                      done.completeExceptionally(t);
                    }
                  });
    }

    void awaitEvents(int count) {
      await().until(() -> events.size() >= count);
    }

    ErrorCode error() {
      try {
        done.join();
      } catch (java.util.concurrent.CompletionException e) {
        if (e.getCause() instanceof SpaceException own) {
          return own.code();
        }
        throw e;
      }
      throw new AssertionError("ended without an error: " + events);
    }
  }

  private static String text(List<OutputEvent> events) {
    var all = new ByteArrayOutputStream();
    for (OutputEvent event : events) {
      if (event instanceof OutputEvent.Bytes bytes) {
        all.writeBytes(bytes.data());
      }
    }
    return all.toString(StandardCharsets.UTF_8);
  }

  private static void refused(ErrorCode code, Runnable work) {
    assertThatThrownBy(work::run)
        .isInstanceOfSatisfying(SpaceException.class, e -> assertThat(e.code()).isEqualTo(code));
  }

  @Test
  @DisplayName("behaviour 3: all output, then the exit, and nothing starts before the attach")
  void a_session_starts_at_its_first_attach() {
    SessionTicket ticket = create();
    String id = ticket.session().id();
    assertThat(ticket.session().state()).isEqualTo(SessionState.CREATED);
    assertThat(guest.has(id)).isFalse();
    var first = new Following(ticket, 0);
    first.awaitEvents(1);
    guest.process(id).write("no newline at the end");
    guest.process(id).exit(3);
    first.done.join();
    assertThat(text(first.events)).isEqualTo("no newline at the end");
    assertThat(first.events.getLast()).isInstanceOf(OutputEvent.Exited.class);
    Session ended = sessions.get(CALLER, BOX, id);
    assertThat(ended.state()).isEqualTo(SessionState.EXITED);
    assertThat(ended.exit()).contains(new ProcessExit(3, 0, false, false));
    assertThat(ended.pid()).contains(42);
    await().until(() -> guest.released(id));
    await().until(() -> host.uses.get() == 0);
  }

  @Test
  void many_readers_each_get_everything_also_after_the_end() {
    SessionTicket ticket = create();
    var readers = IntStream.range(0, 5).mapToObj(_ -> new Following(ticket, 0)).toList();
    readers.forEach(reader -> reader.awaitEvents(1));
    for (int i = 0; i < 100; i++) {
      guest.process(ticket.session().id()).write("line " + i + "\n");
    }
    guest.process(ticket.session().id()).exit(0);
    readers.forEach(reader -> reader.done.join());
    var late = new Following(ticket, 0);
    late.done.join();
    readers.forEach(reader -> assertThat(reader.events).hasSize(102));
    assertThat(text(late.events)).isEqualTo(text(readers.getFirst().events));
    assertThat(guest.starts).isEqualTo(1);
  }

  @ParameterizedTest
  @ValueSource(longs = {0, 1, 2, 5, 6, 7, 100})
  @DisplayName("behaviour 9: reconnecting gives every later event once, and the exit")
  void a_reader_goes_on_after_any_event(long after) {
    SessionTicket ticket = create();
    var first = new Following(ticket, 0);
    first.awaitEvents(1);
    var process = guest.process(ticket.session().id());
    for (int i = 2; i <= 6; i++) {
      process.write("e" + i);
    }
    process.exit(0);
    first.done.join();
    var again = new Following(ticket, after);
    again.done.join();
    assertThat(again.events)
        .extracting(OutputEvent::seq)
        .isEqualTo(first.events.stream().map(OutputEvent::seq).filter(seq -> seq > after).toList());
  }

  @Test
  @DisplayName("behaviours 9, 26: a new daemon goes on with the output of a running session")
  void a_session_survives_the_daemon() {
    SessionTicket ticket = create();
    String id = ticket.session().id();
    var before = new Following(ticket, 0);
    before.awaitEvents(1);
    guest.process(id).write("one");
    before.awaitEvents(2);
    restartDaemon();
    assertThat(before.error()).isEqualTo(ErrorCode.SHUTTING_DOWN);
    var after = new Following(ticket, before.events.getLast().seq());
    guest.process(id).write("two");
    guest.process(id).exit(0);
    after.done.join();
    assertThat(text(before.events) + text(after.events)).isEqualTo("onetwo");
    assertThat(sessions.get(CALLER, BOX, id).state()).isEqualTo(SessionState.EXITED);
  }

  @Test
  @DisplayName("behaviour 9: what happened while no daemon ran is there afterwards")
  void a_session_that_ends_without_a_daemon_has_its_exit() {
    SessionTicket ticket = sessions.create(CALLER, BOX, started(argv("run")), NO_KEY);
    String id = ticket.session().id();
    sessions.close();
    guest.process(id).write("in between");
    guest.process(id).exit(7);
    sessions = service();
    sessions.recover();
    await().until(() -> sessions.get(CALLER, BOX, id).state() == SessionState.EXITED);
    var reader = new Following(ticket, 0);
    reader.done.join();
    assertThat(text(reader.events)).isEqualTo("in between");
  }

  @Test
  @DisplayName("behaviour 9: output goes on over a lost link, a suspend and a wake")
  void a_session_survives_its_link() {
    SessionTicket ticket = create();
    String id = ticket.session().id();
    var reader = new Following(ticket, 0);
    reader.awaitEvents(1);
    guest.cutLink();
    guest.process(id).write("a");
    reader.awaitEvents(2);
    host.states.put(BOX, SandboxState.SUSPENDED);
    guest.cutLink();
    guest.process(id).write("b");
    assertThat(sessions.get(CALLER, BOX, id).state()).isEqualTo(SessionState.RUNNING);
    host.states.put(BOX, SandboxState.RUNNING);
    sessions.sandboxRunning(BOX);
    guest.process(id).exit(0);
    reader.done.join();
    assertThat(text(reader.events)).isEqualTo("ab");
    assertThat(reader.events).extracting(OutputEvent::seq).containsExactly(1L, 2L, 3L, 4L);
  }

  @Test
  @DisplayName("behaviours 4, 28: a lost sandbox ends its streams with an error, no exit")
  void a_lost_session_has_no_exit() {
    SessionTicket ticket = create();
    String id = ticket.session().id();
    var reader = new Following(ticket, 0);
    reader.awaitEvents(1);
    guest.process(id).write("last words");
    reader.awaitEvents(2);
    host.states.put(BOX, SandboxState.FAILED);
    guest.cutLink();
    sessions.sandboxOver(BOX, Problem.of(ErrorCode.SANDBOX_DIED, "The kernel panicked."));
    assertThat(reader.error()).isEqualTo(ErrorCode.SANDBOX_DIED);
    assertThat(reader.events).noneMatch(OutputEvent.Exited.class::isInstance);
    Session lost = sessions.get(CALLER, BOX, id);
    assertThat(lost.state()).isEqualTo(SessionState.LOST);
    assertThat(lost.exit()).isEmpty();
    var late = new Following(ticket, 0);
    assertThat(late.error()).isEqualTo(ErrorCode.SANDBOX_DIED);
    assertThat(text(late.events)).isEqualTo("last words");
  }

  @Test
  @DisplayName("behaviour 4: a process that its guest doesn't know is lost, not ended with 0")
  void a_forgotten_process_is_lost() {
    SessionTicket ticket = create();
    var reader = new Following(ticket, 0);
    reader.awaitEvents(1);
    guest.forget();
    assertThat(reader.error()).isEqualTo(ErrorCode.SANDBOX_DIED);
  }

  @Test
  @DisplayName("behaviour 24: with the sandbox go streams, records and logs")
  void a_deleted_sandbox_takes_its_sessions_along() {
    SessionTicket ticket = create();
    var reader = new Following(ticket, 0);
    reader.awaitEvents(1);
    host.states.put(BOX, SandboxState.DELETED);
    guest.cutLink();
    sessions.sandboxDeleted(BOX);
    assertThat(reader.error()).isEqualTo(ErrorCode.SANDBOX_NOT_FOUND);
    assertThat(root.resolve("sessions").resolve(BOX)).doesNotExist();
    refused(ErrorCode.SESSION_NOT_FOUND, () -> attach(ticket));
  }

  @Test
  @DisplayName("behaviour 10: a create that is repeated with its key makes one session")
  void the_same_key_gives_the_same_session() {
    var key = Optional.of(new IdempotencyKey("key", "print"));
    var first = sessions.create(CALLER, BOX, started(argv("run")), key);
    var second = sessions.create(CALLER, BOX, started(argv("run")), key);
    assertThat(second.session().id()).isEqualTo(first.session().id());
    assertThat(guest.starts).isEqualTo(1);
    refused(
        ErrorCode.IDEMPOTENCY_MISMATCH,
        () ->
            sessions.create(
                CALLER, BOX, request(argv("run")), Optional.of(new IdempotencyKey("key", "x"))));
  }

  @Test
  @DisplayName("behaviour 10: many attaches at once start one process")
  void attaches_at_once_start_one_process() {
    SessionTicket ticket = create();
    var starts =
        IntStream.range(0, 20)
            .mapToObj(_ -> CompletableFuture.runAsync(() -> attach(ticket).start()))
            .toList();
    starts.forEach(CompletableFuture::join);
    assertThat(guest.starts).isEqualTo(1);
  }

  @Test
  @DisplayName("behaviour 17: a command that isn't there is its own error, now and later")
  void a_missing_command_fails() {
    SessionTicket ticket = sessions.create(CALLER, BOX, request(argv("nothere")), NO_KEY);
    refused(ErrorCode.COMMAND_NOT_FOUND, () -> attach(ticket).start());
    refused(ErrorCode.COMMAND_NOT_FOUND, () -> attach(ticket).start());
    assertThat(new Following(ticket, 0).error()).isEqualTo(ErrorCode.COMMAND_NOT_FOUND);
    Session failed = sessions.get(CALLER, BOX, ticket.session().id());
    assertThat(failed.state()).isEqualTo(SessionState.FAILED);
    refused(
        ErrorCode.COMMAND_NOT_FOUND,
        () -> sessions.create(CALLER, BOX, started(argv("nothere")), NO_KEY));
  }

  @Test
  void a_shell_line_takes_bash_and_sh_where_there_is_none() {
    var line = new Command.Shell("echo $HOME");
    var withBash = sessions.create(CALLER, BOX, started(line), NO_KEY);
    assertThat(guest.process(withBash.session().id()).spec.argv())
        .containsExactly("/bin/bash", "-c", "echo $HOME");
    guest.commands.remove("/bin/bash");
    var without = sessions.create(CALLER, BOX, started(line), NO_KEY);
    assertThat(guest.process(without.session().id()).spec.argv())
        .containsExactly("/bin/sh", "-c", "echo $HOME");
    refused(
        ErrorCode.COMMAND_NOT_FOUND,
        () -> sessions.create(CALLER, BOX, started(argv("/bin/bash", "-c", "x")), NO_KEY));
  }

  @Test
  void kill_ends_the_tree_and_keeps_the_exit() {
    SessionTicket ticket = sessions.create(CALLER, BOX, started(argv("run")), NO_KEY);
    Session killed = sessions.kill(CALLER, BOX, ticket.session().id());
    assertThat(killed.state()).isEqualTo(SessionState.EXITED);
    assertThat(killed.exit()).contains(new ProcessExit(-1, 9, false, false));
    assertThat(sessions.kill(CALLER, BOX, ticket.session().id())).isEqualTo(killed);
    SessionTicket never = create();
    assertThat(sessions.kill(CALLER, BOX, never.session().id()).state())
        .isEqualTo(SessionState.FAILED);
    refused(ErrorCode.CANCELLED, () -> attach(never).start());
  }

  @Test
  @DisplayName("behaviour 1: input only where it was asked for; offsets make repeats harmless")
  void input_goes_in_once() {
    SessionTicket ticket = sessions.create(CALLER, BOX, started(argv("cat")), NO_KEY);
    var attachment = attach(ticket);
    byte[] data = new byte[200_000];
    assertThat(attachment.writeStdin(0, data, false)).isEqualTo(200_000);
    assertThat(attachment.writeStdin(199_990, new byte[20], true)).isEqualTo(200_010);
    assertThat(guest.process(ticket.session().id()).stdin.size()).isEqualTo(200_010);
    assertThat(guest.process(ticket.session().id()).eof).isTrue();
    refused(ErrorCode.OFFSET_MISMATCH, () -> attachment.writeStdin(300_000, new byte[1], false));
    refused(ErrorCode.ILLEGAL_STATE, () -> attachment.resize(new PtySize(80, 24)));
    refused(ErrorCode.INVALID_REQUEST, () -> attachment.signal(65, SignalScope.TREE));
    attachment.signal(2, SignalScope.PROCESS);
    assertThat(guest.process(ticket.session().id()).signals).containsExactly(2);
  }

  @Test
  @DisplayName("behaviour 40: foreign, expired and revoked tokens open nothing")
  void tokens_open_one_session() {
    SessionTicket one = create();
    SessionTicket other = create();
    refused(ErrorCode.FORBIDDEN, () -> sessions.attach(one.session().id(), other.token()));
    var reader = new Following(one, 0);
    reader.awaitEvents(1);
    sessions.revoke(CALLER, BOX, one.session().id());
    assertThat(reader.error()).isEqualTo(ErrorCode.FORBIDDEN);
    refused(ErrorCode.FORBIDDEN, () -> attach(one));
    attach(sessions.renew(CALLER, BOX, one.session().id())).start();
    restartDaemon();
    refused(ErrorCode.FORBIDDEN, () -> attach(one));
    attach(other).start();
    now = now.plus(TOKEN_LIFE);
    refused(ErrorCode.TOKEN_EXPIRED, () -> attach(other));
    assertThat(other.toString()).doesNotContain(other.token());
  }

  @Test
  @DisplayName("behaviour 39: another project sees nothing")
  void another_project_sees_nothing() {
    SessionTicket ticket = create();
    var other = new Caller("q", "k2", "r2");
    String id = ticket.session().id();
    refused(ErrorCode.SANDBOX_NOT_FOUND, () -> sessions.get(other, BOX, id));
    refused(ErrorCode.SANDBOX_NOT_FOUND, () -> sessions.kill(other, BOX, id));
    refused(ErrorCode.SANDBOX_NOT_FOUND, () -> sessions.renew(other, BOX, id));
    refused(
        ErrorCode.SANDBOX_NOT_FOUND,
        () -> sessions.create(other, BOX, request(argv("run")), NO_KEY));
  }

  @Test
  void the_list_is_complete_and_pages() {
    var ids = new ArrayList<String>();
    for (int i = 0; i < 5; i++) {
      ids.addFirst(create().session().id());
      now = now.plusSeconds(1);
    }
    var first = sessions.list(CALLER, BOX, 3, Optional.empty());
    var second = sessions.list(CALLER, BOX, 3, first.next());
    assertThat(first.items()).extracting(Session::id).isEqualTo(ids.subList(0, 3));
    assertThat(second.items()).extracting(Session::id).isEqualTo(ids.subList(3, 5));
    assertThat(second.next()).isEmpty();
  }

  @Test
  @DisplayName("behaviour 38: what can't be run is refused with the reason")
  void bad_requests_are_refused() {
    for (Command bad :
        List.of(
            argv(),
            argv(""),
            argv("run", "a\0b"),
            new Command.Shell(" "),
            argv("run", "x".repeat(200_000)))) {
      refused(ErrorCode.INVALID_REQUEST, () -> sessions.create(CALLER, BOX, request(bad), NO_KEY));
    }
    host.states.put(BOX, SandboxState.FAILED);
    refused(ErrorCode.ILLEGAL_STATE, this::create);
  }

  @Test
  @DisplayName("behaviour 18: a thousand sessions leave nothing in memory")
  void sessions_leave_nothing_behind() {
    for (int i = 0; i < 1000; i++) {
      SessionTicket ticket = sessions.create(CALLER, BOX, started(argv("run")), NO_KEY);
      var process = guest.process(ticket.session().id());
      process.write(Stream.STDERR, new byte[] {1, 2, 3});
      process.exit(i % 256);
    }
    await().atMost(Duration.ofSeconds(30)).until(() -> sessions.open() == 0);
    assertThat(host.uses).hasValue(0);
    for (Session session : sessions.list(CALLER, BOX, 1000, Optional.empty()).items()) {
      assertThat(session.state()).isEqualTo(SessionState.EXITED);
    }
  }
}
