package dev.space.dataplane;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessSpec.PtySize;
import dev.space.core.session.SessionService.Attachment;
import dev.space.http.ClientGoneException;
import dev.space.http.Json;
import dev.space.http.ProblemJson;
import dev.space.http.WebSocket;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;

/// A session over a web socket. Binary messages are the bytes of the terminal, both ways; text
/// messages are JSON objects with a `type`. A client that attaches again sees what was shown
/// before, out of the log.
final class TerminalTalk {

  private static final int NORMAL = 1000;
  private static final int FAULT = 1011;

  private final Attachment attachment;
  private final WebSocket socket;
  private final String requestId;

  TerminalTalk(Attachment attachment, WebSocket socket, String requestId) {
    this.attachment = attachment;
    this.socket = socket;
    this.requestId = requestId;
  }

  void run(long after) throws InterruptedException {
    Thread output = Thread.ofVirtual().name("terminal-output").start(() -> output(after));
    try {
      Optional<WebSocket.Message> message = socket.receive();
      while (message.isPresent()) {
        take(message.get());
        message = socket.receive();
      }
    } finally {
      output.interrupt();
      output.join();
    }
  }

  private void output(long after) {
    try {
      attachment.read(after, this::send);
      socket.close(NORMAL, "exited");
    } catch (SpaceException e) {
      if (socket.isOpen()) {
        tell(e.problem());
        socket.close(FAULT, e.code().wire());
      }
    } catch (InterruptedException _) {
      // The client has left.
    }
  }

  private void send(List<OutputEvent> burst) {
    try {
      for (OutputEvent event : burst) {
        switch (event) {
          case OutputEvent.Bytes bytes -> socket.sendBinary(bytes.data());
          case OutputEvent.Started started ->
              socket.sendText("{\"type\":\"started\",\"pid\":" + started.pid() + "}");
          case OutputEvent.Gap gap ->
              socket.sendText("{\"type\":\"gap\",\"bytes\":" + gap.bytes() + "}");
          case OutputEvent.Exited exited ->
              socket.sendText("{\"type\":\"exit\"," + OutputJson.exitMembers(exited.exit()) + "}");
        }
      }
    } catch (ClientGoneException e) {
      throw Problem.of(ErrorCode.CANCELLED, "The client went away.").toException(e);
    }
  }

  private void take(WebSocket.Message message) {
    try {
      switch (message) {
        case WebSocket.Message.Binary(byte[] bytes) -> attachment.appendStdin(bytes, false);
        case WebSocket.Message.Text(String text) -> control(text);
      }
    } catch (SpaceException e) {
      tell(e.problem());
    }
  }

  private void control(String text) {
    JsonNode json;
    try {
      json = Json.mapper().readTree(text);
    } catch (JacksonException e) {
      throw unknown();
    }
    switch (json.path("type").asString("")) {
      case "resize" ->
          attachment.resize(new PtySize(json.path("cols").asInt(0), json.path("rows").asInt(0)));
      case "signal" ->
          attachment.signal(
              Signals.number(json.path("signal").asString("")),
              AttachHandlers.scope(Optional.of(json.path("scope").asString("process"))));
      case "eof" -> attachment.appendStdin(new byte[0], true);
      default -> throw unknown();
    }
  }

  private static SpaceException unknown() {
    return Problem.of(ErrorCode.INVALID_REQUEST, "The message is not understood.")
        .remedy("Send {\"type\": \"resize\" | \"signal\" | \"eof\", …} as text, input as binary.")
        .toException();
  }

  private void tell(Problem problem) {
    var message = new LinkedHashMap<String, Object>();
    message.put("type", "error");
    ProblemJson.of(problem, requestId)
        .forEach((name, value) -> message.put(name.equals("type") ? "problem" : name, value));
    try {
      socket.sendText(Json.mapper().writeValueAsString(message));
    } catch (ClientGoneException _) {
      // Nobody is left to be told.
    }
  }
}
