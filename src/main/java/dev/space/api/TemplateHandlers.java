package dev.space.api;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.template.TemplateRef;
import dev.space.core.template.TemplateService;
import dev.space.http.Exchange;
import dev.space.http.Json;
import dev.space.http.Router;
import dev.space.http.Shown;

/// `/v1/templates`: build from a tar stream, read, tag, delete.
final class TemplateHandlers {
  private static final String ONE = "/v1/templates/{ref}";
  private static final String TAR = "application/x-tar";

  private final TemplateService templates;
  private final Doors doors;

  TemplateHandlers(TemplateService templates, Doors doors) {
    this.templates = templates;
    this.doors = doors;
  }

  void addTo(Router.Builder routes) {
    routes
        .post("/v1/templates", doors.keyed(this::build))
        .get("/v1/templates", doors.keyed(this::list))
        .get(ONE, doors.keyed(this::get))
        .delete(ONE, doors.keyed(this::delete))
        .get(ONE + "/tags", doors.keyed(this::tagged))
        .post(ONE + "/tags", doors.keyed(this::tag))
        .delete(ONE + "/tags/{tag}", doors.keyed(this::untag));
  }

  /// The body streams through, so an idempotency key covers method, path and query alone.
  private void build(Exchange exchange, Caller caller) {
    exchange.query().allow("tag");
    TemplateRef.Tagged as = tagged(exchange.query().required("tag"));
    Json.requireMediaType(exchange, TAR);
    Calls.accepted(
        exchange, templates.build(caller, as, exchange.body(), Calls.key(exchange, new byte[0])));
  }

  private void list(Exchange exchange, Caller caller) {
    exchange.query().allow("limit", "cursor");
    Calls.page(
        exchange,
        templates.list(caller, Calls.limit(exchange), Calls.cursor(exchange)),
        TemplateJson::of);
  }

  private void get(Exchange exchange, Caller caller) {
    exchange.query().allow();
    Json.send(exchange, 200, TemplateJson.of(templates.get(caller, ref(exchange))));
  }

  private void delete(Exchange exchange, Caller caller) {
    exchange.query().allow();
    Calls.noBody(exchange);
    templates.delete(caller, ref(exchange));
    exchange.status(204).sendEmpty();
  }

  private void tagged(Exchange exchange, Caller caller) {
    exchange.query().allow();
    String name = tagged(exchange.pathVariable("ref")).name();
    Json.send(
        exchange,
        200,
        new PageJson<>(
            templates.tagged(caller, name).stream().map(TemplateJson::of).toList(),
            java.util.Optional.empty()));
  }

  record TagJson(String tag) {}

  private void tag(Exchange exchange, Caller caller) {
    exchange.query().allow();
    var body = Json.read(exchange, TagJson.class, Calls.BODY_BYTES_MAX);
    if (body.tag() == null) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "The field 'tag' is missing")
          .remedy("Send {\"tag\": \"name:tag\"}.")
          .toException();
    }
    Json.send(
        exchange, 200, TemplateJson.of(templates.tag(caller, ref(exchange), tagged(body.tag()))));
  }

  private void untag(Exchange exchange, Caller caller) {
    exchange.query().allow();
    Calls.noBody(exchange);
    String name = tagged(exchange.pathVariable("ref")).name();
    templates.untag(caller, tagged(name + ":" + exchange.pathVariable("tag")));
    exchange.status(204).sendEmpty();
  }

  private static TemplateRef ref(Exchange exchange) {
    return TemplateRef.parse(exchange.pathVariable("ref"));
  }

  private static TemplateRef.Tagged tagged(String text) {
    return switch (TemplateRef.parse(text)) {
      case TemplateRef.Tagged tagged -> tagged;
      case TemplateRef.Digest digest ->
          throw Problem.of(
                  ErrorCode.INVALID_REQUEST,
                  "A name is needed here, '" + Shown.of(digest.digest()) + "' is a digest")
              .remedy("Use name or name:tag.")
              .toException();
    };
  }
}
