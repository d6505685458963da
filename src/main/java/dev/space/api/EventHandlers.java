package dev.space.api;

import dev.space.core.access.Caller;
import dev.space.core.event.EventService;
import dev.space.core.event.LifecycleEvent;
import dev.space.http.EventStream;
import dev.space.http.Exchange;
import dev.space.http.Json;
import dev.space.http.LastEvent;
import dev.space.http.Router;
import java.util.Map;
import java.util.Optional;

/// `/v1/events`: the caller's lifecycle events, resumable by `Last-Event-ID`.
final class EventHandlers {
  private static final long FROM_NOW_ON = -1;

  private final EventService events;
  private final Doors doors;

  EventHandlers(EventService events, Doors doors) {
    this.events = events;
    this.doors = doors;
  }

  void addTo(Router.Builder routes) {
    routes.get("/v1/events", doors.keyed(this::follow));
  }

  record EventJson(
      long seq,
      String at,
      String type,
      Optional<String> sandboxId,
      Optional<String> operationId,
      Map<String, String> data) {
    static EventJson of(LifecycleEvent e) {
      return new EventJson(
          e.seq(), Calls.text(e.at()), e.type(), e.sandboxId(), e.operationId(), e.data());
    }
  }

  private void follow(Exchange exchange, Caller caller) {
    exchange.query().allow("after");
    long asked = LastEvent.seen(exchange, FROM_NOW_ON);
    // Fixed before the answer begins: what happens once the caller sees it is not missed.
    long after = asked == FROM_NOW_ON ? events.last() : asked;
    EventStream stream = exchange.events();
    events.follow(
        caller,
        after,
        event ->
            stream.send(Long.toString(event.seq()), event.type(), Json.text(EventJson.of(event))));
  }
}
