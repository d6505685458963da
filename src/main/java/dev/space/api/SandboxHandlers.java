package dev.space.api;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.operation.IdempotencyKey;
import dev.space.core.operation.Operation;
import dev.space.core.sandbox.SandboxQuery;
import dev.space.core.sandbox.SandboxService;
import dev.space.core.sandbox.SandboxState;
import dev.space.http.Exchange;
import dev.space.http.Json;
import dev.space.http.Router;
import dev.space.http.Shown;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/// `/v1/sandboxes`: every change is an operation.
final class SandboxHandlers {
  private static final String ONE = "/v1/sandboxes/{id}";

  private final SandboxService sandboxes;
  private final Doors doors;

  SandboxHandlers(SandboxService sandboxes, Doors doors) {
    this.sandboxes = sandboxes;
    this.doors = doors;
  }

  void addTo(Router.Builder routes) {
    routes
        .post("/v1/sandboxes", doors.keyed(this::create))
        .get("/v1/sandboxes", doors.keyed(this::list))
        .get(ONE, doors.keyed(this::get))
        .patch(ONE, doors.keyed(this::update))
        .delete(ONE, doors.keyed((e, caller) -> change(e, caller, sandboxes::delete)))
        .post(ONE + "/pause", doors.keyed((e, caller) -> change(e, caller, sandboxes::pause)))
        .post(ONE + "/suspend", doors.keyed((e, caller) -> memory(e, caller, sandboxes::suspend)))
        .post(ONE + "/wake", doors.keyed((e, caller) -> memory(e, caller, sandboxes::wake)))
        .post(ONE + "/fork", doors.keyed(this::fork))
        .post(ONE + "/snapshots", doors.keyed(this::snapshot));
  }

  private void create(Exchange exchange, Caller caller) {
    exchange.query().allow();
    var body = Json.read(exchange, CreateSandboxJson.class, Calls.BODY_BYTES_MAX);
    Calls.accepted(exchange, sandboxes.create(caller, body.request(), key(exchange)));
  }

  private void list(Exchange exchange, Caller caller) {
    exchange.query().allow("state", "template", "metadata", "limit", "cursor");
    Set<SandboxState> states = EnumSet.noneOf(SandboxState.class);
    exchange.query().all("state").forEach(text -> states.add(state(text)));
    Map<String, String> metadata = new HashMap<>();
    for (String pair : exchange.query().all("metadata")) {
      int equals = pair.indexOf('=');
      if (equals <= 0) {
        throw Problem.of(
                ErrorCode.INVALID_REQUEST,
                "The metadata filter '" + Shown.of(pair) + "' is not a pair")
            .remedy("Write metadata=KEY%3DVALUE; repeat it for further pairs.")
            .toException();
      }
      metadata.put(pair.substring(0, equals), pair.substring(equals + 1));
    }
    var query =
        new SandboxQuery(
            states,
            exchange.query().one("template"),
            metadata,
            Calls.limit(exchange),
            Calls.cursor(exchange));
    Calls.page(exchange, sandboxes.list(caller, query), SandboxJson::of);
  }

  private static SandboxState state(String text) {
    return Arrays.stream(SandboxState.values())
        .filter(state -> state.wire().equals(text))
        .findFirst()
        .orElseThrow(
            () ->
                Problem.of(ErrorCode.INVALID_REQUEST, "'" + Shown.of(text) + "' is no state")
                    .remedy(
                        "Use one of: "
                            + Arrays.stream(SandboxState.values())
                                .map(SandboxState::wire)
                                .collect(Collectors.joining(", "))
                            + ".")
                    .toException());
  }

  private void get(Exchange exchange, Caller caller) {
    exchange.query().allow();
    Json.send(exchange, 200, SandboxJson.of(sandboxes.get(caller, exchange.pathVariable("id"))));
  }

  private void update(Exchange exchange, Caller caller) {
    exchange.query().allow();
    var body = Json.read(exchange, UpdateSandboxJson.class, Calls.BODY_BYTES_MAX);
    Json.send(
        exchange,
        200,
        SandboxJson.of(sandboxes.update(caller, exchange.pathVariable("id"), body.change())));
  }

  private interface Change {
    Operation apply(Caller caller, String id, Optional<IdempotencyKey> key);
  }

  private static void change(Exchange exchange, Caller caller, Change change) {
    exchange.query().allow();
    byte[] body = Calls.noBody(exchange);
    Calls.accepted(
        exchange, change.apply(caller, exchange.pathVariable("id"), Calls.key(exchange, body)));
  }

  record MemoryJson(Optional<Boolean> memory) {}

  private interface MemoryChange {
    Operation apply(Caller caller, String id, boolean memory, Optional<IdempotencyKey> key);
  }

  private static void memory(Exchange exchange, Caller caller, MemoryChange change) {
    exchange.query().allow();
    var body = Json.readOrEmpty(exchange, MemoryJson.class, Calls.BODY_BYTES_MAX);
    Calls.accepted(
        exchange,
        change.apply(
            caller, exchange.pathVariable("id"), body.memory().orElse(true), key(exchange)));
  }

  record ForkJson(Optional<Integer> count) {}

  private void fork(Exchange exchange, Caller caller) {
    exchange.query().allow();
    var body = Json.readOrEmpty(exchange, ForkJson.class, Calls.BODY_BYTES_MAX);
    int count = body.count().orElse(1);
    Calls.accepted(
        exchange, sandboxes.fork(caller, exchange.pathVariable("id"), count, key(exchange)));
  }

  record SnapshotRequestJson(Optional<String> name) {}

  private void snapshot(Exchange exchange, Caller caller) {
    exchange.query().allow();
    var body = Json.readOrEmpty(exchange, SnapshotRequestJson.class, Calls.BODY_BYTES_MAX);
    Calls.accepted(
        exchange,
        sandboxes.snapshot(caller, exchange.pathVariable("id"), body.name(), key(exchange)));
  }

  private static Optional<IdempotencyKey> key(Exchange exchange) {
    return Calls.key(exchange, exchange.bodyBytes(Calls.BODY_BYTES_MAX));
  }
}
