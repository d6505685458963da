package dev.space.api;

import dev.space.core.access.Caller;
import dev.space.core.session.SessionService;
import dev.space.core.session.SessionTicket;
import dev.space.http.Exchange;
import dev.space.http.Json;
import dev.space.http.Router;

/// `/v1/sandboxes/{id}/sessions`: made and looked after here, attached to on the data plane.
final class SessionHandlers {
  private static final String ALL = "/v1/sandboxes/{id}/sessions";
  private static final String ONE = ALL + "/{session_id}";

  private final SessionService sessions;
  private final ApiSettings settings;
  private final Doors doors;

  SessionHandlers(SessionService sessions, ApiSettings settings, Doors doors) {
    this.sessions = sessions;
    this.settings = settings;
    this.doors = doors;
  }

  void addTo(Router.Builder routes) {
    routes
        .post(ALL, doors.keyed(this::create))
        .get(ALL, doors.keyed(this::list))
        .get(ONE, doors.keyed(this::get))
        .delete(ONE, doors.keyed(this::kill))
        .post(ONE + "/attach", doors.keyed(this::renew))
        .delete(ONE + "/attach", doors.keyed(this::revoke));
  }

  /// A session and the right to attach to it.
  record TicketJson(SessionJson session, String attachUrl, String attachToken, String expiresAt) {}

  private void create(Exchange exchange, Caller caller) {
    exchange.query().allow();
    var body = Json.read(exchange, CreateSessionJson.class, Calls.BODY_BYTES_MAX);
    var key = Calls.key(exchange, exchange.bodyBytes(Calls.BODY_BYTES_MAX));
    ticket(
        exchange, 201, sessions.create(caller, exchange.pathVariable("id"), body.request(), key));
  }

  private void list(Exchange exchange, Caller caller) {
    exchange.query().allow("limit", "cursor");
    Calls.page(
        exchange,
        sessions.list(
            caller, exchange.pathVariable("id"), Calls.limit(exchange), Calls.cursor(exchange)),
        SessionJson::of);
  }

  private void get(Exchange exchange, Caller caller) {
    exchange.query().allow();
    Json.send(
        exchange, 200, SessionJson.of(sessions.get(caller, sandbox(exchange), session(exchange))));
  }

  private void kill(Exchange exchange, Caller caller) {
    exchange.query().allow();
    Calls.noBody(exchange);
    Json.send(
        exchange, 200, SessionJson.of(sessions.kill(caller, sandbox(exchange), session(exchange))));
  }

  private void renew(Exchange exchange, Caller caller) {
    exchange.query().allow();
    Calls.noBody(exchange);
    ticket(exchange, 200, sessions.renew(caller, sandbox(exchange), session(exchange)));
  }

  private void revoke(Exchange exchange, Caller caller) {
    exchange.query().allow();
    Calls.noBody(exchange);
    sessions.revoke(caller, sandbox(exchange), session(exchange));
    exchange.status(204).sendEmpty();
  }

  private void ticket(Exchange exchange, int status, SessionTicket ticket) {
    exchange.header("Cache-Control", "no-store");
    Json.send(
        exchange,
        status,
        new TicketJson(
            SessionJson.of(ticket.session()),
            dataUrl(exchange) + ticket.attachPath(),
            ticket.token(),
            Calls.text(ticket.expiresAt())));
  }

  /// The data plane as this caller reaches it.
  private String dataUrl(Exchange exchange) {
    return settings
        .dataUrl()
        .orElseGet(
            () -> {
              String host = exchange.host().orElse("127.0.0.1");
              int colon = host.lastIndexOf(':');
              String name = colon >= 0 && !host.endsWith("]") ? host.substring(0, colon) : host;
              return exchange.scheme() + "://" + name + ":" + settings.dataPort().getAsInt();
            });
  }

  private static String sandbox(Exchange exchange) {
    return exchange.pathVariable("id");
  }

  private static String session(Exchange exchange) {
    return exchange.pathVariable("session_id");
  }
}
