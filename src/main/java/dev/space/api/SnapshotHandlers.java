package dev.space.api;

import dev.space.core.access.Caller;
import dev.space.core.snapshot.SnapshotService;
import dev.space.http.Exchange;
import dev.space.http.Json;
import dev.space.http.Router;

/// `/v1/snapshots`; they are taken by `POST /v1/sandboxes/{id}/snapshots`.
final class SnapshotHandlers {
  private static final String ONE = "/v1/snapshots/{id}";

  private final SnapshotService snapshots;
  private final Doors doors;

  SnapshotHandlers(SnapshotService snapshots, Doors doors) {
    this.snapshots = snapshots;
    this.doors = doors;
  }

  void addTo(Router.Builder routes) {
    routes
        .get("/v1/snapshots", doors.keyed(this::list))
        .get(ONE, doors.keyed(this::get))
        .delete(ONE, doors.keyed(this::delete));
  }

  private void list(Exchange exchange, Caller caller) {
    exchange.query().allow("sandbox_id", "limit", "cursor");
    Calls.page(
        exchange,
        snapshots.list(
            caller,
            exchange.query().one("sandbox_id"),
            Calls.limit(exchange),
            Calls.cursor(exchange)),
        SnapshotJson::of);
  }

  private void get(Exchange exchange, Caller caller) {
    exchange.query().allow();
    Json.send(exchange, 200, SnapshotJson.of(snapshots.get(caller, exchange.pathVariable("id"))));
  }

  private void delete(Exchange exchange, Caller caller) {
    exchange.query().allow();
    Calls.noBody(exchange);
    snapshots.delete(caller, exchange.pathVariable("id"));
    exchange.status(204).sendEmpty();
  }
}
