package dev.space.e2b;

import dev.space.core.error.Problem;
import dev.space.http.ErrorRenderer;
import dev.space.http.Exchange;
import dev.space.http.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/// An error outside of Connect calls: `{"code": <status>, "message": …}`. JavaScript's SDK reads
/// the code, not the status, so both are always the same.
final class E2bError extends RuntimeException {

  private final int status;

  E2bError(int status, String message) {
    super(message);
    this.status = status;
  }

  /// How errors of ours look on this listener.
  static final ErrorRenderer RENDERER = E2bError::render;

  private static void render(Exchange exchange, Problem problem) {
    send(
        exchange,
        problem.code().status(),
        problem.oneLine() + problem.remedy().map(r -> ". " + r).orElse(""));
  }

  static void send(Exchange exchange, int status, String message) {
    Map<String, Object> body = new LinkedHashMap<>();
    body.put("code", status);
    body.put("message", message);
    Json.send(exchange, status, body);
  }

  void send(Exchange exchange) {
    String message = getMessage();
    send(exchange, status, message == null ? "" : message);
  }

  /// What E2B's proxy says of a sandbox that isn't there or doesn't run.
  static void sandboxGone(Exchange exchange, String sandboxId) {
    Map<String, Object> body = new LinkedHashMap<>();
    body.put("sandboxId", sandboxId);
    body.put("message", "The sandbox was not found");
    body.put("code", 502);
    Json.send(exchange, 502, body);
  }

  static void portClosed(Exchange exchange, String sandboxId, int port) {
    Map<String, Object> body = new LinkedHashMap<>();
    body.put("sandboxId", sandboxId);
    body.put("message", "The sandbox is running but port is not open");
    body.put("port", port);
    body.put("code", 502);
    Json.send(exchange, 502, body);
  }
}
