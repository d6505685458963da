package dev.space.api;

import dev.space.core.access.Caller;
import dev.space.core.operation.OperationService;
import dev.space.core.template.TemplateService;
import dev.space.http.EventStream;
import dev.space.http.Exchange;
import dev.space.http.Json;
import dev.space.http.LastEvent;
import dev.space.http.Router;
import java.time.Duration;
import java.util.Map;

/// `/v1/operations`: reading, waiting, and the log of a template build.
final class OperationHandlers {
  private static final String ONE = "/v1/operations/{id}";

  private final OperationService operations;
  private final TemplateService templates;
  private final Doors doors;

  OperationHandlers(OperationService operations, TemplateService templates, Doors doors) {
    this.operations = operations;
    this.templates = templates;
    this.doors = doors;
  }

  void addTo(Router.Builder routes) {
    routes
        .get("/v1/operations", doors.keyed(this::list))
        .get(ONE, doors.keyed(this::get))
        .get(ONE + "/log", doors.keyed(this::log));
  }

  private void list(Exchange exchange, Caller caller) {
    exchange.query().allow("sandbox_id", "limit", "cursor");
    Calls.page(
        exchange,
        operations.list(
            caller,
            exchange.query().one("sandbox_id"),
            Calls.limit(exchange),
            Calls.cursor(exchange)),
        OperationJson::of);
  }

  private void get(Exchange exchange, Caller caller) {
    exchange.query().allow("wait");
    Duration wait =
        exchange
            .query()
            .one("wait")
            .map(text -> Calls.duration("wait", text))
            .map(d -> d.compareTo(OperationService.WAIT_MAX) > 0 ? OperationService.WAIT_MAX : d)
            .orElse(Duration.ZERO);
    Json.send(
        exchange, 200, OperationJson.of(operations.get(caller, exchange.pathVariable("id"), wait)));
  }

  private void log(Exchange exchange, Caller caller) {
    exchange.query().allow("after");
    long after = LastEvent.seen(exchange, 0);
    String id = exchange.pathVariable("id");
    operations.get(caller, id, Duration.ZERO);
    EventStream events = exchange.events();
    templates.buildLog(
        caller,
        id,
        after,
        (line, text) ->
            events.send(Long.toString(line), "log", Json.text(Map.of("line", line, "text", text))));
    events.send("", "end", Json.text(OperationJson.of(operations.get(caller, id, Duration.ZERO))));
  }
}
