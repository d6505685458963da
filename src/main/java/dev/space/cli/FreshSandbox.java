package dev.space.cli;

import java.util.UUID;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/// A sandbox for one command. It is gone afterwards, whether the command ended, failed or was
/// interrupted — even while the sandbox was being made.
final class FreshSandbox implements AutoCloseable {

  /// What the service does by itself should this process die so that it can't clean up.
  private static final String ABANDONED_AFTER = "10m";

  private final Service service;
  private final ObjectNode request;
  private final String key = UUID.randomUUID().toString();
  private final OnExit onExit;
  private volatile boolean asked;
  private volatile String id = "";

  FreshSandbox(Service service, ObjectNode request) {
    this.service = service;
    this.request = request.put("idle_timeout", ABANDONED_AFTER).put("on_timeout", "delete");
    this.onExit = OnExit.of(this::remove);
  }

  /// Creates the sandbox and waits until it runs.
  ///
  /// @return its id
  String create(Progress progress, boolean shown) {
    asked = true;
    JsonNode accepted = post();
    id = accepted.path("sandbox_id").asString();
    Operations.await(service.api(), accepted, progress, shown);
    return id;
  }

  private JsonNode post() {
    return service.api().post("/v1/sandboxes", request, key);
  }

  /// Asking again with the same key names the sandbox, also when the first answer never came.
  private void remove() {
    try {
      if (asked) {
        service.delete(id.isEmpty() ? post().path("sandbox_id").asString() : id);
      }
    } finally {
      service.close();
    }
  }

  @Override
  public void close() {
    onExit.close();
  }
}
