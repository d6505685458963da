package dev.space.api;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.node.Capacity;
import dev.space.core.node.NodeRuntime;
import dev.space.http.Exchange;
import dev.space.http.Json;
import dev.space.http.Router;
import java.io.IOException;
import java.io.InputStream;
import java.util.Map;
import java.util.Optional;

/// The node, health, metrics and the contract itself.
final class NodeHandlers {
  private final NodeRuntime node;
  private final ApiSettings settings;
  private final ServiceMetrics metrics;
  private final Doors doors;
  private final byte[] contract;

  NodeHandlers(NodeRuntime node, ApiSettings settings, ServiceMetrics metrics, Doors doors) {
    this.node = node;
    this.settings = settings;
    this.metrics = metrics;
    this.doors = doors;
    this.contract = contract();
  }

  void addTo(Router.Builder routes) {
    routes
        .get("/v1/node", doors.keyed(this::node))
        .get("/healthz", NodeHandlers::health)
        .get("/readyz", this::ready)
        .get("/metrics", this::metrics)
        .get("/openapi.yaml", this::openapi);
  }

  record CapacityJson(
      int vmsMax,
      int vms,
      long memoryBytes,
      long memoryPromisedBytes,
      long diskBytes,
      long diskFreeBytes,
      int warm) {
    static CapacityJson of(Capacity c) {
      return new CapacityJson(
          c.vmsMax(),
          c.vms(),
          c.memoryBytes(),
          c.memoryPromisedBytes(),
          c.diskBytes(),
          c.diskFreeBytes(),
          c.warm());
    }
  }

  record NodeJson(
      String name, String isolation, CapacityJson capacity, String version, String vmmVersion) {}

  private void node(Exchange exchange, Caller caller) {
    exchange.query().allow();
    Json.send(
        exchange,
        200,
        new NodeJson(
            node.name(),
            node.isolation().wire(),
            CapacityJson.of(node.capacity()),
            settings.version(),
            settings.vmmVersion()));
  }

  /// The process answers; says nothing about what it stands on.
  private static void health(Exchange exchange) {
    exchange.query().allow();
    Json.send(exchange, 200, Map.of("status", "ok"));
  }

  private void ready(Exchange exchange) {
    exchange.query().allow();
    Optional<String> why = settings.notReady().get();
    if (why.isPresent()) {
      throw Problem.of(ErrorCode.PREREQUISITE_MISSING, "The service takes no work yet")
          .because(why.get())
          .remedy("Wait, or ask `space doctor` on the machine.")
          .toException();
    }
    Json.send(exchange, 200, Map.of("status", "ready"));
  }

  /// Open to callers on the same machine; others, and who comes through a proxy on it, need a key.
  /// Counts are of the whole node and carry no name of a tenant's things.
  private void metrics(Exchange exchange) throws IOException {
    exchange.query().allow();
    boolean proxied =
        exchange.header("X-Forwarded-For").isPresent() || exchange.header("Forwarded").isPresent();
    if (proxied || !exchange.remote().getAddress().isLoopbackAddress()) {
      doors.caller(exchange);
    }
    exchange.send(ServiceMetrics.CONTENT_TYPE, metrics.text());
  }

  private void openapi(Exchange exchange) {
    exchange.query().allow();
    exchange.send("application/yaml", contract);
  }

  private static byte[] contract() {
    try (InputStream in = NodeHandlers.class.getResourceAsStream("/openapi.yaml")) {
      if (in == null) {
        throw Problem.of(ErrorCode.INTERNAL, "This build lacks openapi.yaml").toException();
      }
      return in.readAllBytes();
    } catch (IOException e) {
      throw Problem.of(ErrorCode.INTERNAL, "openapi.yaml can't be read").toException(e);
    }
  }
}
