package dev.space.core.session;

import dev.space.core.Ids;
import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest.SignalScope;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessSpec;
import dev.space.core.guest.ProcessSpec.PtySize;
import dev.space.core.operation.IdempotencyKey;
import dev.space.core.sandbox.Sandbox;
import dev.space.core.store.Page;
import dev.space.core.store.Store;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;

/// Sessions: made by callers of the API, used by holders of attachment tokens.
///
/// A session is created first and its process starts at the first attach, or at once when asked.
/// From then on its output flows into a log on the node's disk, whether anybody is attached or not,
/// and goes on after a restart of the daemon and after the sandbox slept.
public final class SessionService implements AutoCloseable {

  private static final int SIGKILL = 9;
  private static final int LIST_MAX = 1000;

  /// How long a kill waits to see the exit it caused.
  private static final Duration KILL_WAIT = Duration.ofSeconds(2);

  private final SessionHost host;
  private final SessionRecords records;
  private final OutputLogs logs;
  private final AttachmentToken tokens;
  private final InstantSource clock;
  private final Duration tokenLife;
  private final Ids ids;
  private final LiveSessions live;
  private final SessionRetention retention;

  /// @param tokenLife how long an attachment token is good
  public SessionService(
      SessionHost host,
      Store store,
      OutputLogs logs,
      AttachmentToken tokens,
      InstantSource clock,
      Ids ids,
      Duration tokenLife) {
    this.host = host;
    this.records = new SessionRecords(store);
    this.logs = logs;
    this.tokens = tokens;
    this.clock = clock;
    this.ids = ids;
    this.tokenLife = tokenLife;
    this.live = new LiveSessions(host, this.records, logs, clock);
    this.retention = new SessionRetention(records, logs, live, clock);
  }

  /// Makes a session, and starts it when asked to. A repeated call with the same key answers with
  /// the same session and starts no second process.
  ///
  /// @throws dev.space.core.error.SpaceException INVALID_REQUEST, SANDBOX_NOT_FOUND; ILLEGAL_STATE
  ///   when the sandbox is over; TOO_MANY_REQUESTS when it has too many that are not; with `start`
  ///   also what a start can fail with: COMMAND_NOT_FOUND, USER_NOT_FOUND, WORKDIR_NOT_FOUND, and
  ///   the session is then recorded as failed
  public SessionTicket create(
      Caller caller, String sandboxId, CreateSession request, Optional<IdempotencyKey> key) {
    Sandbox sandbox = host.get(caller, sandboxId);
    if (sandbox.state().isOver()) {
      throw Problem.of(
              ErrorCode.ILLEGAL_STATE,
              "The sandbox is " + sandbox.state().wire() + " and runs no commands any more.")
          .remedy("Create a new sandbox.")
          .toException();
    }
    Session made = records.insert(session(caller, sandboxId, request), key);
    retention.created(sandboxId);
    if (request.start()) {
      with(
          made,
          session -> {
            session.start(caller);
            return session.session();
          });
    }
    return ticket(live.current(made));
  }

  public Session get(Caller caller, String sandboxId, String sessionId) {
    host.get(caller, sandboxId);
    return live.current(record(caller, sandboxId, sessionId));
  }

  /// Sessions of a sandbox, newest first, the ended ones too.
  public Page<Session> list(Caller caller, String sandboxId, int limit, Optional<String> cursor) {
    host.get(caller, sandboxId);
    if (limit < 1 || limit > LIST_MAX) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "A page of " + limit + " can't be had.")
          .remedy("Give a limit of 1 to " + LIST_MAX + ".")
          .toException();
    }
    var page = records.list(caller.project(), sandboxId, limit, cursor);
    var items = new ArrayList<Session>(page.items().size());
    page.items().forEach(session -> items.add(live.current(session)));
    return new Page<>(List.copyOf(items), page.next());
  }

  /// Kills the whole tree; the session stays readable with its exit.
  public Session kill(Caller caller, String sandboxId, String sessionId) {
    host.get(caller, sandboxId);
    Session known = live.current(record(caller, sandboxId, sessionId));
    if (known.state().isTerminal()) {
      return known;
    }
    return with(known, session -> kill(caller, session));
  }

  private Session kill(Caller caller, LiveSession session) {
    var ended = Problem.of(ErrorCode.CANCELLED, "The session was ended before it was started.");
    if (session.cancel(ended) || session.session().state().isTerminal()) {
      return session.session();
    }
    try (var use = host.use(caller, session.session().sandboxId())) {
      use.guest().signal(session.session().id(), SIGKILL, SignalScope.TREE);
    }
    session.pump();
    awaitEnd(session);
    return session.session();
  }

  /// A new token for a session; older ones stay good until they expire.
  public SessionTicket renew(Caller caller, String sandboxId, String sessionId) {
    return ticket(get(caller, sandboxId, sessionId));
  }

  /// Makes all tokens of a session worthless and ends what is attached with them.
  public void revoke(Caller caller, String sandboxId, String sessionId) {
    Session known = get(caller, sandboxId, sessionId);
    with(
        known,
        session -> {
          Session changed =
              session.change(change -> change.tokenEpoch(session.session().tokenEpoch() + 1));
          logs.epoch(sandboxId, sessionId, changed.tokenEpoch());
          session.log().wake();
          return changed;
        });
  }

  /// Checks a token without asking the database of the control plane: what it opens is signed into
  /// it, and the epoch is the node's own knowledge.
  ///
  /// @throws dev.space.core.error.SpaceException UNAUTHENTICATED when it isn't a token of this
  ///   service, TOKEN_EXPIRED, FORBIDDEN when it belongs to another session or was revoked
  public Attachment attach(String sessionId, String token) {
    var claims = tokens.verify(token, clock.instant());
    if (!claims.sessionId().equals(sessionId)) {
      throw Problem.of(ErrorCode.FORBIDDEN, "The attachment token belongs to another session.")
          .remedy("Use the token that came with this session.")
          .toException();
    }
    Optional<Session> held = live.find(sessionId);
    int epoch =
        held.map(Session::tokenEpoch).orElseGet(() -> logs.epoch(claims.sandboxId(), sessionId));
    if (claims.epoch() != epoch) {
      throw AttachedSession.revoked();
    }
    Session session = held.or(() -> records.find(sessionId)).orElseThrow(() -> notFound(sessionId));
    return new AttachedSession(session, epoch, host, live);
  }

  /// To be called whenever a sandbox has begun to run with a new guest link: created, resumed,
  /// woken, adopted by a new daemon. Output of its sessions flows on.
  public void sandboxRunning(String sandboxId) {
    records.running(sandboxId).forEach(this::resume);
  }

  /// To be called when a sandbox died or stopped: its sessions are lost with this cause.
  public void sandboxOver(String sandboxId, Problem cause) {
    records.running(sandboxId).forEach(session -> lose(session, cause));
    // A session that was being started has no record that says it runs.
    live.of(sandboxId).forEach(session -> lose(session, cause));
  }

  /// To be called when a sandbox is deleted: streams end with an error, logs and records go.
  public void sandboxDeleted(String sandboxId) {
    sandboxOver(sandboxId, Problem.of(ErrorCode.SANDBOX_NOT_FOUND, "The sandbox was deleted."));
    records.forget(sandboxId);
    retention.sandboxDeleted(sandboxId);
    logs.delete(sandboxId);
  }

  /// Takes up the sessions of a former daemon. Called once, after the node recovered its sandboxes.
  public void recover() {
    for (Session session : records.running()) {
      var sandbox = host.find(session.sandboxId());
      if (sandbox.isEmpty() || sandbox.get().state().isOver()) {
        var cause =
            sandbox
                .flatMap(Sandbox::cause)
                .orElse(Problem.of(ErrorCode.SANDBOX_DIED, "The session's sandbox is gone."));
        lose(session, cause);
      } else {
        resume(session);
      }
    }
    retention.sweep();
  }

  private void lose(Session session, Problem cause) {
    with(
        session,
        held -> {
          held.lost(cause);
          return held.session();
        });
  }

  private void resume(Session running) {
    with(
        running,
        session -> {
          session.resume();
          return session.session();
        });
  }

  /// How many sessions are open: attached to, or with a process that runs. For metrics.
  public int open() {
    return live.count();
  }

  /// Lets go of all sessions; their processes go on and the next daemon takes them up.
  @Override
  public void close() {
    live.close();
  }

  private <T> T with(Session known, Function<LiveSession, T> work) {
    try (var hold = live.hold(known)) {
      return work.apply(hold.session());
    }
  }

  private void awaitEnd(LiveSession session) {
    Instant until = clock.instant().plus(KILL_WAIT);
    try (var reader = session.log().reader(session.log().lastSeq())) {
      while (!session.session().state().isTerminal() && clock.instant().isBefore(until)) {
        reader.next(KILL_WAIT);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  // -- records

  private Session session(Caller caller, String sandboxId, CreateSession request) {
    String id = ids.next(Ids.Kind.SESSION);
    ProcessSpec spec = CommandRules.spec(id, request);
    return new Session(
        id,
        caller.project(),
        sandboxId,
        spec,
        request.command() instanceof CreateSession.Command.Shell,
        SessionState.CREATED,
        Optional.empty(),
        Optional.empty(),
        Optional.empty(),
        request.keep(),
        0,
        clock.instant().truncatedTo(ChronoUnit.MILLIS),
        Optional.empty(),
        Optional.empty(),
        1);
  }

  private Session record(Caller caller, String sandboxId, String sessionId) {
    return records
        .find(caller.project(), sandboxId, sessionId)
        .orElseThrow(() -> notFound(sessionId));
  }

  private static SpaceException notFound(String sessionId) {
    return Problem.of(ErrorCode.SESSION_NOT_FOUND, "There is no session " + sessionId + ".")
        .remedy("List the sandbox's sessions: GET /v1/sandboxes/{id}/sessions.")
        .toException();
  }

  private SessionTicket ticket(Session session) {
    Instant expiresAt = clock.instant().plus(tokenLife).truncatedTo(ChronoUnit.SECONDS);
    var claims =
        new AttachmentToken.Claims(
            session.sandboxId(), session.id(), session.tokenEpoch(), expiresAt);
    return new SessionTicket(session, tokens.sign(claims), expiresAt);
  }

  /// The data plane's hold on one session.
  public interface Attachment {

    /// The session as it stands now.
    Session session();

    /// Starts the process if it hasn't been.
    ///
    /// @throws dev.space.core.error.SpaceException why it can't be or couldn't be started
    Session start();

    /// Gives every event after `afterSeq` to the reader, up to and with the exit. A session whose
    /// backend is lost throws its error after the last event that is known, and a token that is
    /// revoked meanwhile throws FORBIDDEN. Events the client has seen already are never repeated.
    void read(long afterSeq, OutputReader reader) throws InterruptedException;

    /// The last bytes of each kind of output up to and with an event, at most three of each: what a
    /// reader that goes on after that event needs to put a divided character together.
    Map<OutputEvent.Stream, byte[]> tails(long seq) throws InterruptedException;

    /// Writes input at its position in the whole input and says where the next byte goes. Starts
    /// the process if it hasn't been.
    ///
    /// @throws dev.space.core.error.SpaceException OFFSET_MISMATCH; ILLEGAL_STATE when the session
    ///   has no input or its process doesn't run
    long writeStdin(long offset, byte[] data, boolean eof);

    /// Writes input after all that was written before, whoever wrote it: for terminals, where
    /// several may type.
    void appendStdin(byte[] data, boolean eof);

    /// Number of the last event so far; reading after it gives only what is still to come.
    long lastSeq();

    void signal(int signal, SignalScope scope);

    void resize(PtySize size);
  }
}
