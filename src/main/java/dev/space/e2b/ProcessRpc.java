package dev.space.e2b;

import com.google.protobuf.ByteString;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest.SignalScope;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessExit;
import dev.space.core.guest.ProcessSpec.PtySize;
import dev.space.core.session.CreateSession;
import dev.space.core.session.Session;
import dev.space.core.session.SessionService;
import dev.space.core.session.SessionState;
import dev.space.core.session.SessionTicket;
import dev.space.e2b.proto.process.*;
import dev.space.e2b.proto.process.ProcessEvent.DataEvent;
import dev.space.e2b.proto.process.ProcessEvent.EndEvent;
import dev.space.e2b.proto.process.ProcessEvent.KeepAlive;
import dev.space.e2b.proto.process.ProcessEvent.StartEvent;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// `process.Process`: every process is a session of the native API, so both see the same ones.
final class ProcessRpc {

  private static final int COLS_DEFAULT = 80;
  private static final int ROWS_DEFAULT = 24;
  private static final int CHUNK_BYTES_MAX = 32 * 1024;
  private static final int SIGKILL = 9;
  private static final int SIGTERM = 15;

  /// How long the exit of a process that ended can still be asked for.
  private static final Duration EXIT_KEPT = Duration.ofSeconds(30);

  private static final Duration KILL_WAIT = Duration.ofSeconds(1);

  private static final Logger LOG = LoggerFactory.getLogger(ProcessRpc.class);
  private static final int SESSIONS_MAX = 1000;

  private final SessionService sessions;
  private final InstantSource clock;

  ProcessRpc(SessionService sessions, InstantSource clock) {
    this.sessions = sessions;
    this.clock = clock;
  }

  ListResponse list(EnvdCall call) {
    ListResponse.Builder answer = ListResponse.newBuilder();
    for (Session session : all(call)) {
      if (session.state() == SessionState.RUNNING && session.pid().isPresent()) {
        answer.addProcesses(info(session, session.pid().get()));
      }
    }
    return answer.build();
  }

  private static ProcessInfo info(Session session, int pid) {
    List<String> argv = session.spec().argv();
    ProcessConfig.Builder config =
        ProcessConfig.newBuilder()
            .setCmd(argv.getFirst())
            .addAllArgs(argv.subList(1, argv.size()))
            .putAllEnvs(session.spec().env());
    session.spec().cwd().ifPresent(config::setCwd);
    ProcessInfo.Builder info = ProcessInfo.newBuilder().setConfig(config).setPid(pid);
    if (!session.spec().tag().isEmpty()) {
      info.setTag(session.spec().tag());
    }
    return info.build();
  }

  void start(EnvdCall call, StartRequest request, EnvelopeWriter out) throws InterruptedException {
    SessionTicket ticket;
    try {
      ticket =
          sessions.create(
              call.caller(), call.sandbox().id(), toSession(call, request), Optional.empty());
    } catch (SpaceException e) {
      if (e.code() == ErrorCode.USER_NOT_FOUND) {
        throw invalidUser(call);
      }
      throw e;
    }
    follow(
        call,
        ticket,
        0,
        out,
        event -> StartResponse.newBuilder().setEvent(event).build(),
        Optional.empty());
  }

  private static CreateSession toSession(EnvdCall call, StartRequest request) {
    ProcessConfig process = request.getProcess();
    if (process.getCmd().isEmpty()) {
      throw new ConnectException(ConnectCode.INVALID_ARGUMENT, "The process has no cmd");
    }
    List<String> argv = new ArrayList<>();
    argv.add(process.getCmd());
    argv.addAll(process.getArgsList());
    Map<String, String> env = new HashMap<>(process.getEnvsMap());
    env.put("E2B_SANDBOX", "true");
    env.put("E2B_SANDBOX_ID", call.sandbox().id());
    env.put("E2B_TEMPLATE_ID", call.sandbox().template());
    return new CreateSession(
        new CreateSession.Command.Argv(List.copyOf(argv)),
        Map.copyOf(env),
        process.hasCwd() ? Optional.of(process.getCwd()) : Optional.empty(),
        call.user(),
        !request.hasStdin() || request.getStdin(),
        request.hasPty() ? Optional.of(size(request.getPty())) : Optional.empty(),
        call.timeout(),
        request.hasTag() ? Optional.of(request.getTag()) : Optional.empty(),
        true,
        true);
  }

  void connect(EnvdCall call, ConnectRequest request, EnvelopeWriter out)
      throws InterruptedException {
    Session session = find(call, request.getProcess(), true);
    SessionTicket ticket = sessions.renew(call.caller(), call.sandbox().id(), session.id());
    out.message(
        ConnectResponse.newBuilder()
            .setEvent(
                ProcessEvent.newBuilder()
                    .setStart(StartEvent.newBuilder().setPid(session.pid().orElse(0))))
            .build());
    follow(
        call,
        ticket,
        sessions.attach(session.id(), ticket.token()).lastSeq(),
        out,
        event -> ConnectResponse.newBuilder().setEvent(event).build(),
        call.timeout());
  }

  private void follow(
      EnvdCall call,
      SessionTicket ticket,
      long afterSeq,
      EnvelopeWriter out,
      Function<ProcessEvent, com.google.protobuf.Message> wrap,
      Optional<Duration> limit)
      throws InterruptedException {
    out.keepAlive(
        call.keepAlive(),
        wrap.apply(ProcessEvent.newBuilder().setKeepalive(KeepAlive.newBuilder()).build()));
    SessionService.Attachment attachment = sessions.attach(ticket.session().id(), ticket.token());
    var ended = new AtomicBoolean();
    Deadline.run(
        limit,
        () ->
            attachment.read(
                afterSeq,
                burst -> {
                  for (OutputEvent event : burst) {
                    forward(event, out, wrap);
                    ended.compareAndSet(false, event instanceof OutputEvent.Exited);
                  }
                }));
    if (!ended.get()) {
      // The exit lay before what was asked for.
      attachment
          .session()
          .exit()
          .ifPresent(
              exit -> out.message(wrap.apply(ProcessEvent.newBuilder().setEnd(end(exit)).build())));
    }
  }

  private static void forward(
      OutputEvent event,
      EnvelopeWriter out,
      Function<ProcessEvent, com.google.protobuf.Message> wrap) {
    switch (event) {
      case OutputEvent.Started started ->
          out.message(
              wrap.apply(
                  ProcessEvent.newBuilder()
                      .setStart(StartEvent.newBuilder().setPid(started.pid()))
                      .build()));
      case OutputEvent.Bytes bytes -> forward(bytes, out, wrap);
      case OutputEvent.Gap _ -> {
        // E2B has no word for output that is gone.
      }
      case OutputEvent.Exited exited -> {
        if (exited.exit().timedOut()) {
          throw new ConnectException(
              ConnectCode.DEADLINE_EXCEEDED, "The process was killed: its time is over");
        }
        out.message(wrap.apply(ProcessEvent.newBuilder().setEnd(end(exited.exit())).build()));
      }
    }
  }

  private static void forward(
      OutputEvent.Bytes bytes,
      EnvelopeWriter out,
      Function<ProcessEvent, com.google.protobuf.Message> wrap) {
    byte[] all = bytes.data();
    for (int from = 0; from < all.length; from += CHUNK_BYTES_MAX) {
      ByteString part =
          ByteString.copyFrom(all, from, Math.min(CHUNK_BYTES_MAX, all.length - from));
      DataEvent.Builder data = DataEvent.newBuilder();
      switch (bytes.stream()) {
        case STDOUT -> data.setStdout(part);
        case STDERR -> data.setStderr(part);
        case PTY -> data.setPty(part);
      }
      out.message(wrap.apply(ProcessEvent.newBuilder().setData(data).build()));
    }
  }

  /// The end of a process in Go's words, which the SDKs show.
  static EndEvent end(ProcessExit exit) {
    EndEvent.Builder end = EndEvent.newBuilder();
    if (exit.signal() != 0) {
      String status =
          "signal: " + SignalNames.of(exit.signal()) + (exit.coreDumped() ? " (core dumped)" : "");
      return end.setExitCode(-1).setExited(false).setStatus(status).setError(status).build();
    }
    String status = "exit status " + exit.code();
    end.setExitCode(exit.code()).setExited(true).setStatus(status);
    if (exit.code() != 0) {
      end.setError(status);
    }
    return end.build();
  }

  UpdateResponse update(EnvdCall call, UpdateRequest request) {
    Session session = find(call, request.getProcess(), false);
    if (request.hasPty()) {
      if (session.spec().pty().isEmpty()) {
        throw new ConnectException(ConnectCode.INTERNAL, "The process has no terminal");
      }
      attach(call, session).resize(size(request.getPty()));
    }
    return UpdateResponse.getDefaultInstance();
  }

  SendInputResponse sendInput(EnvdCall call, SendInputRequest request) {
    send(call, request.getProcess(), request.getInput());
    return SendInputResponse.getDefaultInstance();
  }

  /// Takes input as a client stream: the first message names the process, the others hold data.
  void streamInput(EnvdCall call) throws IOException {
    Codec codec =
        Connect.codec(call.exchange(), true)
            .orElseThrow(() -> Connect.unsupported(call.exchange()));
    try (var out = new EnvelopeWriter(call.exchange().stream(codec.streamType()), codec)) {
      try {
        readInput(call, codec);
        out.message(StreamInputResponse.getDefaultInstance());
        out.end(Connect.END_OK);
      } catch (SpaceException e) {
        out.end(Connect.endError(ConnectException.of(e)));
      } catch (ConnectException e) {
        out.end(Connect.endError(e));
      }
    }
  }

  private void readInput(EnvdCall call, Codec codec) throws IOException {
    var in = new DataInputStream(call.exchange().body());
    Optional<ProcessSelector> process = Optional.empty();
    while (true) {
      byte[] envelope;
      try {
        envelope = Connect.readEnvelope(in);
      } catch (EOFException _) {
        return;
      }
      StreamInputRequest request =
          Connect.decode(codec, envelope, StreamInputRequest.getDefaultInstance());
      switch (request.getEventCase()) {
        case START -> process = Optional.of(request.getStart().getProcess());
        case DATA ->
            send(
                call,
                process.orElseThrow(
                    () ->
                        new ConnectException(
                            ConnectCode.INVALID_ARGUMENT, "The first message must be start")),
                request.getData().getInput());
        case KEEPALIVE, EVENT_NOT_SET -> {
          // Only says that the client is there.
        }
      }
    }
  }

  /// Writes input behind all that was written before.
  void send(EnvdCall call, ProcessSelector selector, ProcessInput input) {
    Session session = find(call, selector, false);
    boolean terminal = session.spec().pty().isPresent();
    ByteString data =
        switch (input.getInputCase()) {
          case STDIN -> input.getStdin();
          case PTY -> input.getPty();
          case INPUT_NOT_SET ->
              throw new ConnectException(ConnectCode.INVALID_ARGUMENT, "The input is empty");
        };
    if (terminal != input.hasPty()) {
      throw new ConnectException(
          ConnectCode.INTERNAL,
          terminal
              ? "The process has a terminal: send pty"
              : "The process has no terminal: send stdin");
    }
    if (!terminal && !session.spec().stdin()) {
      throw new ConnectException(ConnectCode.INTERNAL, "stdin is not enabled for this process");
    }
    internalUnlessFound(
        () -> {
          attach(call, session).appendStdin(data.toByteArray(), false);
        });
  }

  SendSignalResponse sendSignal(EnvdCall call, SendSignalRequest request)
      throws InterruptedException {
    int signal =
        switch (request.getSignal()) {
          case SIGNAL_SIGKILL -> SIGKILL;
          case SIGNAL_SIGTERM -> SIGTERM;
          case SIGNAL_UNSPECIFIED, UNRECOGNIZED ->
              throw new ConnectException(
                  ConnectCode.UNIMPLEMENTED, "Only SIGKILL and SIGTERM can be sent");
        };
    Session session = find(call, request.getProcess(), false);
    var attachment = attach(call, session);
    long seen = attachment.lastSeq();
    attachment.signal(signal, SignalScope.PROCESS);
    if (signal == SIGKILL) {
      awaitExit(attachment, seen);
    }
    return SendSignalResponse.getDefaultInstance();
  }

  /// A killed process is gone for the call that follows. Its output may be held open by others, so
  /// the wait is bounded.
  private static void awaitExit(SessionService.Attachment attachment, long seen)
      throws InterruptedException {
    try {
      Deadline.run(Optional.of(KILL_WAIT), () -> attachment.read(seen, _ -> {}));
    } catch (ConnectException e) {
      if (e.code() != ConnectCode.DEADLINE_EXCEEDED) {
        throw e;
      }
    } catch (SpaceException e) {
      // The kill was sent; how the session ends is another's concern.
      LOG.debug("kill: {}", e.problem().oneLine());
    }
  }

  CloseStdinResponse closeStdin(EnvdCall call, CloseStdinRequest request) {
    Session session = find(call, request.getProcess(), false);
    if (session.spec().pty().isPresent()) {
      throw new ConnectException(
          ConnectCode.UNKNOWN, "A terminal's input can't be closed: send Ctrl-D");
    }
    internalUnlessFound(
        () -> {
          attach(call, session).appendStdin(new byte[0], true);
        });
    return CloseStdinResponse.getDefaultInstance();
  }

  private static void internalUnlessFound(Runnable write) {
    try {
      write.run();
    } catch (SpaceException e) {
      if (ConnectCode.of(e.code()) == ConnectCode.NOT_FOUND) {
        throw e;
      }
      throw new ConnectException(ConnectCode.INTERNAL, e.problem().oneLine());
    }
  }

  private SessionService.Attachment attach(EnvdCall call, Session session) {
    SessionTicket ticket = sessions.renew(call.caller(), call.sandbox().id(), session.id());
    return sessions.attach(session.id(), ticket.token());
  }

  private Session find(EnvdCall call, ProcessSelector selector, boolean ended) {
    for (Session session : all(call)) {
      boolean matches =
          switch (selector.getSelectorCase()) {
            case PID -> session.pid().filter(pid -> pid == selector.getPid()).isPresent();
            case TAG -> session.spec().tag().equals(selector.getTag());
            case SELECTOR_NOT_SET ->
                throw new ConnectException(
                    ConnectCode.INVALID_ARGUMENT, "The selector names no pid and no tag");
          };
      if (matches && (session.state() == SessionState.RUNNING || ended && justEnded(session))) {
        return session;
      }
    }
    throw new ConnectException(
        ConnectCode.NOT_FOUND,
        selector.hasPid()
            ? "process with pid " + selector.getPid() + " not found"
            : "process with tag " + selector.getTag() + " not found");
  }

  private boolean justEnded(Session session) {
    Instant oldest = clock.instant().minus(EXIT_KEPT);
    return session.state() == SessionState.EXITED
        && session.endedAt().filter(at -> at.isAfter(oldest)).isPresent();
  }

  private List<Session> all(EnvdCall call) {
    return sessions
        .list(call.caller(), call.sandbox().id(), SESSIONS_MAX, Optional.empty())
        .items();
  }

  private static PtySize size(Pty pty) {
    // A client that isn't on a terminal itself knows no size and says 0.
    int cols = pty.getSize().getCols();
    int rows = pty.getSize().getRows();
    return new PtySize(cols == 0 ? COLS_DEFAULT : cols, rows == 0 ? ROWS_DEFAULT : rows);
  }

  private static ConnectException invalidUser(EnvdCall call) {
    return new ConnectException(
        ConnectCode.UNAUTHENTICATED, "invalid username: '" + call.user().orElse("") + "'");
  }
}
