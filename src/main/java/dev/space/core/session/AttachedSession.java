package dev.space.core.session;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.guest.Guest.SignalScope;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessSpec.PtySize;
import dev.space.core.sandbox.SandboxService;
import java.time.Duration;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/// What a checked token allows: everything with its session, nothing else.
final class AttachedSession implements SessionService.Attachment {

  /// A chunk of bytes on the guest link.
  private static final int CHUNK_BYTES_MAX = 64 * 1024;

  /// How often an idle reader looks around.
  private static final Duration WAIT = Duration.ofMinutes(1);

  /// Where the last bytes are looked for first, in events before the one in question.
  private static final int TAIL_EVENTS = 256;

  /// A character of UTF-8 that isn't complete has no more.
  private static final int TAIL_BYTES = 3;

  private final Session known;
  private final int epoch;
  private final SessionHost host;
  private final LiveSessions live;
  private final Caller caller;

  AttachedSession(Session known, int epoch, SessionHost host, LiveSessions live) {
    this.known = known;
    this.epoch = epoch;
    this.host = host;
    this.live = live;
    this.caller = new Caller(known.project(), "attachment", known.id());
  }

  static SpaceException revoked() {
    return Problem.of(ErrorCode.FORBIDDEN, "The attachment token was revoked.")
        .remedy("Get a new one: POST /v1/sandboxes/{id}/sessions/{session_id}/attach.")
        .toException();
  }

  @Override
  public Session session() {
    return live.current(known);
  }

  @Override
  public Session start() {
    try (var hold = live.hold(known)) {
      check(hold.session());
      hold.session().start(caller);
      return hold.session().session();
    }
  }

  @Override
  public void read(long afterSeq, OutputReader reader) throws InterruptedException {
    try (var hold = live.hold(known)) {
      LiveSession session = hold.session();
      check(session);
      // Opened before the start, so that nothing of the output can be dropped before it is read.
      try (var output = session.log().reader(afterSeq)) {
        session.start(caller);
        SandboxService.@Nullable Use use = keepAwake(session.session());
        try {
          deliver(session, output, reader);
        } finally {
          if (use != null) {
            use.close();
          }
        }
      }
    }
  }

  private void deliver(LiveSession session, OutputLog.Reader output, OutputReader reader)
      throws InterruptedException {
    while (true) {
      List<OutputEvent> burst = output.next(WAIT);
      check(session);
      if (!burst.isEmpty()) {
        reader.accept(burst);
        if (burst.getLast() instanceof OutputEvent.Exited) {
          return;
        }
      } else if (output.finished()) {
        if (session.session().state() == SessionState.EXITED) {
          return;
        }
        if (session.session().state().isTerminal()) {
          throw session.error().toException();
        }
        throw Problem.of(ErrorCode.SHUTTING_DOWN, "The service lets go of the session.")
            .remedy("Attach again with the last event's number.")
            .toException();
      }
    }
  }

  @Override
  public Map<OutputEvent.Stream, byte[]> tails(long seq) throws InterruptedException {
    try (var hold = live.hold(known)) {
      check(hold.session());
      var near = tails(hold.session().log(), Math.max(0, seq - TAIL_EVENTS), seq);
      int streams = known.spec().pty().isPresent() ? 1 : 2;
      boolean sure =
          near.size() == streams && near.values().stream().allMatch(t -> t.length == TAIL_BYTES);
      return sure || seq <= TAIL_EVENTS ? near : tails(hold.session().log(), 0, seq);
    }
  }

  private static Map<OutputEvent.Stream, byte[]> tails(OutputLog log, long from, long to)
      throws InterruptedException {
    var tails = new EnumMap<OutputEvent.Stream, byte[]>(OutputEvent.Stream.class);
    try (var reader = log.reader(from)) {
      long at = from;
      List<OutputEvent> burst = at < to ? reader.next(Duration.ZERO) : List.of();
      while (!burst.isEmpty() && at < to) {
        for (OutputEvent event : burst) {
          at = event.seq();
          if (at <= to && event instanceof OutputEvent.Bytes bytes) {
            tails.merge(bytes.stream(), bytes.data(), AttachedSession::lastBytes);
          }
        }
        burst = at < to ? reader.next(Duration.ZERO) : List.of();
      }
    }
    tails.replaceAll((_, data) -> lastBytes(new byte[0], data));
    return tails;
  }

  private static byte[] lastBytes(byte[] before, byte[] after) {
    int fromAfter = Math.min(TAIL_BYTES, after.length);
    int fromBefore = Math.min(TAIL_BYTES - fromAfter, before.length);
    byte[] last = new byte[fromBefore + fromAfter];
    System.arraycopy(before, before.length - fromBefore, last, 0, fromBefore);
    System.arraycopy(after, after.length - fromAfter, last, fromBefore, fromAfter);
    return last;
  }

  /// Wakes a sandbox that is to be woken by an attachment and keeps it from being idle. The output
  /// of one that sleeps on is served from the log.
  private SandboxService.@Nullable Use keepAwake(Session session) {
    if (session.state() != SessionState.RUNNING) {
      return null;
    }
    try {
      return host.use(caller, session.sandboxId());
    } catch (SpaceException e) {
      if (e.code() == ErrorCode.ILLEGAL_STATE) {
        return null;
      }
      throw e;
    }
  }

  @Override
  public long writeStdin(long offset, byte[] data, boolean eof) {
    if (offset < 0) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "The offset is negative.")
          .remedy("Give how many bytes were written before; 0 for the first.")
          .toException();
    }
    startForInput();
    return running(
        (session, guest) -> {
          long next = offset;
          int at = 0;
          do {
            int length = Math.min(CHUNK_BYTES_MAX, data.length - at);
            boolean last = at + length == data.length;
            byte[] chunk = length == data.length ? data : Arrays.copyOfRange(data, at, at + length);
            next = guest.writeStdin(known.id(), offset + at, chunk, eof && last);
            at += length;
          } while (at < data.length);
          session.input().written(next);
          return next;
        });
  }

  @Override
  public void appendStdin(byte[] data, boolean eof) {
    startForInput();
    running(
        (session, guest) -> {
          int at = 0;
          do {
            int length = Math.min(CHUNK_BYTES_MAX, data.length - at);
            boolean last = at + length == data.length;
            session.input().append(guest, Arrays.copyOfRange(data, at, at + length), eof && last);
            at += length;
          } while (at < data.length);
          return at;
        });
  }

  @Override
  public long lastSeq() {
    try (var hold = live.hold(known)) {
      return hold.session().log().lastSeq();
    }
  }

  private void startForInput() {
    if (!known.spec().stdin()) {
      throw Problem.of(ErrorCode.ILLEGAL_STATE, "The session has no input.")
          .because("It was created without stdin, so its process reads end-of-file.")
          .remedy("Create it with stdin: true.")
          .toException();
    }
    if (session().state() == SessionState.CREATED) {
      start();
    }
  }

  @Override
  public void signal(int signal, SignalScope scope) {
    CommandRules.signal(signal);
    running(
        (_, guest) -> {
          guest.signal(known.id(), signal, scope);
          return signal;
        });
  }

  @Override
  public void resize(PtySize size) {
    CommandRules.size(size);
    if (known.spec().pty().isEmpty()) {
      throw Problem.of(ErrorCode.ILLEGAL_STATE, "The session has no terminal to resize.")
          .remedy("Create it with pty: {cols, rows}.")
          .toException();
    }
    running(
        (_, guest) -> {
          guest.resize(known.id(), size);
          return size;
        });
  }

  private <T> T running(BiFunction<LiveSession, Guest, T> work) {
    try (var hold = live.hold(known)) {
      check(hold.session());
      SessionState state = hold.session().session().state();
      if (state != SessionState.RUNNING) {
        String remedy =
            state == SessionState.CREATED
                ? "Attach to it first, or create it with start: true."
                : "Create a new session.";
        throw Problem.of(ErrorCode.ILLEGAL_STATE, "The session is " + state.wire() + ".")
            .remedy(remedy)
            .toException();
      }
      try (var use = host.use(caller, known.sandboxId())) {
        return work.apply(hold.session(), use.guest());
      }
    }
  }

  private void check(LiveSession session) {
    if (session.session().tokenEpoch() != epoch) {
      throw revoked();
    }
  }
}
