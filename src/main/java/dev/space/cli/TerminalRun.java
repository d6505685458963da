package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.wire.Headers;
import dev.space.wire.WebSocket;
import dev.space.wire.WebSocket.Message;
import dev.space.wire.WireException;
import java.io.IOException;
import java.util.Optional;
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

  /// Size of the terminal in the sandbox when there is none here.
  private static final Size SIZE_DEFAULT = Size.of(80, 24);

  /// Leaves the alternate screen, bracketed paste, mouse reports, hidden cursor and colours behind,
  /// whichever of them the command had switched on.
  private static final String SANE =
      "\u001b[?1049l\u001b[?2004l\u001b[?1000l\u001b[?1002l\u001b[?1003l\u001b[?1006l\u001b[?25h\u001b[0m";

  private final CommandRun run;
  private final Surroundings surroundings;
  private Optional<SpaceException> refusal = Optional.empty();

  TerminalRun(CommandRun run, Surroundings surroundings) {
    this.run = run;
    this.surroundings = surroundings;
  }

  /// Runs the command.
  ///
  /// @return the exit status for this process
  int runIn(Api api, String sandboxId) {
    if (!surroundings.inTerminal() || !surroundings.outTerminal()) {
      try (WebSocket socket = open(api, sandboxId, SIZE_DEFAULT)) {
        return join(socket);
      }
    }
    try (Terminal terminal = TerminalBuilder.builder().system(true).dumb(false).build()) {
      Attributes before = terminal.getAttributes();
      try (WebSocket socket = open(api, sandboxId, terminal.getSize());
          OnExit _ = OnExit.of(() -> restore(terminal, before))) {
        terminal.setAttributes(raw(before));
        terminal.handle(Signal.WINCH, _ -> resize(socket, terminal.getSize()));
        return join(socket);
      }
    } catch (IOException e) {
      throw Problem.of(ErrorCode.INTERNAL, "The terminal can't be used")
          .because(e)
          .remedy("Run the command without a terminal: space exec ID -- CMD")
          .toException(e);
    }
  }

  private WebSocket open(Api api, String sandboxId, Size size) {
    ObjectNode request = run.request();
    request.putObject("pty").put("rows", size.getRows()).put("cols", size.getColumns());
    JsonNode ticket = api.post("/v1/sandboxes/" + Api.part(sandboxId) + "/sessions", request);
    Headers headers =
        Headers.NONE.with("Authorization", "Bearer " + ticket.path("attach_token").asString());
    return Api.socketAt(ticket.path("attach_url").asString(), headers);
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
      throw lost(String.valueOf(e.getMessage()));
    }
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

  private static SpaceException lost(String why) {
    return Problem.of(ErrorCode.SANDBOX_DIED, "The terminal's connection was lost")
        .because(why)
        .remedy("The session goes on if its sandbox lives: space sandbox ls")
        .toException();
  }

  private void sendInput(WebSocket socket) {
    byte[] bytes = new byte[INPUT_BYTES];
    try {
      for (int n = surroundings.in().read(bytes); n >= 0; n = surroundings.in().read(bytes)) {
        socket.sendBinary(bytes, 0, n);
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
