package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.wire.Headers;
import dev.space.wire.WebSocket;
import dev.space.wire.WebSocket.Message;
import dev.space.wire.WireException;
import java.io.IOException;
import java.util.Arrays;
import java.util.Optional;
import java.util.function.Function;
import org.jline.terminal.Attributes;
import org.jline.terminal.Attributes.ControlChar;
import org.jline.terminal.Attributes.InputFlag;
import org.jline.terminal.Attributes.LocalFlag;
import org.jline.terminal.Attributes.OutputFlag;
import org.jline.terminal.Size;
import org.jline.terminal.Terminal;
import org.jline.terminal.Terminal.Signal;
import org.jline.terminal.TerminalBuilder;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/// A command with a terminal: the local one in raw mode, joined to the one in the sandbox. However
/// it ends, the local terminal is put back as it was.
final class TerminalRun {

  private static final int INPUT_BYTES = 4096;

  /// Size of the terminal in the sandbox when there is none here, or it doesn't say its own.
  private static final Size SIZE_DEFAULT = Size.of(80, 24);

  /// Leaves the alternate screen, bracketed paste, mouse reports, hidden cursor and colours behind,
  /// whichever of them the command had switched on.
  private static final String SANE =
      "\u001b[?1049l\u001b[?2004l\u001b[?1000l\u001b[?1002l\u001b[?1003l\u001b[?1006l\u001b[?25h\u001b[0m";

  private final Function<Size, JsonNode> session;
  private final String sandboxId;
  private final long after;
  private final Surroundings surroundings;
  private final DetachKeys keys = new DetachKeys();
  private String sessionId = "";
  private volatile boolean detached;
  private Optional<SpaceException> refusal = Optional.empty();

  /// @param session makes a session for a terminal of this size, or finds one, and tells its ticket
  /// @param after number of the last event that isn't shown
  TerminalRun(
      Function<Size, JsonNode> session, String sandboxId, long after, Surroundings surroundings) {
    this.session = session;
    this.sandboxId = sandboxId;
    this.after = after;
    this.surroundings = surroundings;
  }

  /// A new session of a command.
  static TerminalRun of(CommandRun run, Api api, String sandboxId, Surroundings surroundings) {
    return new TerminalRun(
        size -> {
          ObjectNode request = run.request();
          request.putObject("pty").put("rows", size.getRows()).put("cols", size.getColumns());
          return api.post("/v1/sandboxes/" + Api.part(sandboxId) + "/sessions", request);
        },
        sandboxId,
        0,
        surroundings);
  }

  /// Joins the terminals until the session ends or is left.
  ///
  /// @return the exit status for this process
  int run() {
    if (!surroundings.inTerminal() || !surroundings.outTerminal()) {
      try (WebSocket socket = open(SIZE_DEFAULT)) {
        return join(socket);
      }
    }
    try (Terminal terminal =
        TerminalBuilder.builder().system(true).dumb(false).graphemeCluster(false).build()) {
      Attributes before = terminal.getAttributes();
      try (WebSocket socket = open(sizeOr80x24(terminal.getSize()));
          OnExit _ = OnExit.of(() -> restore(terminal, before))) {
        terminal.setAttributes(raw(before));
        terminal.handle(Signal.WINCH, _ -> resize(socket, sizeOr80x24(terminal.getSize())));
        resize(socket, sizeOr80x24(terminal.getSize()));
        return join(socket);
      }
    } catch (IOException e) {
      throw Problem.of(ErrorCode.INTERNAL, "The terminal can't be used")
          .because(e)
          .remedy("Run the command without a terminal: space exec ID -- CMD")
          .toException(e);
    }
  }

  private WebSocket open(Size size) {
    JsonNode ticket = session.apply(size);
    sessionId = ticket.path("session").path("id").asString();
    Headers headers =
        Headers.NONE.with("Authorization", "Bearer " + ticket.path("attach_token").asString());
    return Api.socketAt(
        ticket.path("attach_url").asString() + (after > 0 ? "?after=" + after : ""), headers);
  }

  /// Everything goes to the sandbox as it is typed, Ctrl-C included.
  private static Attributes raw(Attributes before) {
    Attributes raw = new Attributes(before);
    raw.setLocalFlag(LocalFlag.ICANON, false);
    raw.setLocalFlag(LocalFlag.ECHO, false);
    raw.setLocalFlag(LocalFlag.ISIG, false);
    raw.setLocalFlag(LocalFlag.IEXTEN, false);
    raw.setInputFlag(InputFlag.BRKINT, false);
    raw.setInputFlag(InputFlag.ICRNL, false);
    raw.setInputFlag(InputFlag.INLCR, false);
    raw.setInputFlag(InputFlag.IGNCR, false);
    raw.setInputFlag(InputFlag.ISTRIP, false);
    raw.setInputFlag(InputFlag.IXON, false);
    raw.setOutputFlag(OutputFlag.OPOST, false);
    raw.setControlChar(ControlChar.VMIN, 1);
    raw.setControlChar(ControlChar.VTIME, 0);
    return raw;
  }

  private void restore(Terminal terminal, Attributes before) {
    terminal.setAttributes(before);
    surroundings.err().print(SANE);
    surroundings.err().flush();
  }

  /// A serial line and a terminal of some build tools don't say their size: they have 0 columns.
  static Size sizeOr80x24(Size said) {
    return said.getColumns() > 0 && said.getRows() > 0 ? said : SIZE_DEFAULT;
  }

  private static void resize(WebSocket socket, Size size) {
    ObjectNode message = Json.object().put("type", "resize");
    message.put("rows", size.getRows()).put("cols", size.getColumns());
    try {
      socket.sendText(Json.compact(message));
    } catch (WireException e) {
      // The reader of the socket sees the same end and tells it.
    }
  }

  private int join(WebSocket socket) {
    Thread.ofPlatform().daemon().name("stdin").start(() -> sendInput(socket));
    try {
      while (true) {
        Optional<Message> message = socket.receive();
        if (detached) {
          return left();
        }
        if (message.isEmpty()) {
          throw lost("the connection ended");
        }
        Optional<Integer> status =
            switch (message.get()) {
              case Message.Binary(byte[] bytes) -> show(bytes);
              case Message.Text(String text) -> control(Json.read(text));
              case Message.Closed(int code, String reason) ->
                  throw refusal.orElseGet(
                      () -> lost(reason.isEmpty() ? "closed with code " + code : reason));
            };
        if (status.isPresent()) {
          return status.get();
        }
      }
    } catch (IOException e) {
      if (detached) {
        return left();
      }
      throw lost(String.valueOf(e.getMessage()));
    }
  }

  private int left() {
    surroundings.err().print("\r\nspace: detached; come back with: " + comeBack() + "\r\n");
    return ExitStatus.OK;
  }

  private String comeBack() {
    return "space attach " + sandboxId + " " + sessionId;
  }

  private Optional<Integer> show(byte[] bytes) throws IOException {
    surroundings.out().write(bytes);
    surroundings.out().flush();
    return Optional.empty();
  }

  private Optional<Integer> control(JsonNode message) {
    return switch (message.path("type").asString()) {
      case "exit" ->
          Optional.of(
              new SessionStream.End(message.path("code").asInt(0), message.path("signal").asInt(0))
                  .status());
      case "error" -> {
        // Told at the end if it was one; a resize that came too late is none.
        refusal = Optional.of(Api.problem(message).toException());
        yield Optional.empty();
      }
      default -> Optional.empty();
    };
  }

  private SpaceException lost(String why) {
    return Problem.of(ErrorCode.SANDBOX_DIED, "The terminal's connection was lost")
        .because(why)
        .remedy("The session goes on if its sandbox lives: " + comeBack())
        .toException();
  }

  private void sendInput(WebSocket socket) {
    byte[] bytes = new byte[INPUT_BYTES];
    try {
      for (int n = surroundings.in().read(bytes); n >= 0; n = surroundings.in().read(bytes)) {
        byte[] typed = surroundings.inTerminal() ? keys.typed(bytes, n) : Arrays.copyOf(bytes, n);
        if (typed.length > 0) {
          socket.sendBinary(typed, 0, typed.length);
        }
        if (keys.detach()) {
          detached = true;
          socket.close();
          return;
        }
      }
      if (!surroundings.inTerminal()) {
        // What ends a file ends a terminal's input as Ctrl-D.
        socket.sendBinary(new byte[] {4}, 0, 1);
      }
    } catch (IOException e) {
      // The reader of the socket sees the same end and tells it.
    }
  }
}
