package dev.space.api;

import dev.space.http.Router;

/// The native API's control plane: every path of `openapi.yaml` that isn't marked as data plane.
public final class NativeApi {
  private NativeApi() {}

  public static Router router(ApiServices services, ApiSettings settings, ServiceMetrics metrics) {
    metrics.sandboxes(services.sandboxes()::counts);
    var doors = new Doors(services.keys());
    Router.Builder routes = Router.builder();
    new SandboxHandlers(services.sandboxes(), doors).addTo(routes);
    new OperationHandlers(services.operations(), services.templates(), doors).addTo(routes);
    new SessionHandlers(services.sessions(), settings, doors).addTo(routes);
    new UsageHandlers(services.usage(), doors).addTo(routes);
    new TemplateHandlers(services.templates(), doors).addTo(routes);
    new SnapshotHandlers(services.snapshots(), doors).addTo(routes);
    new EventHandlers(services.events(), doors).addTo(routes);
    new NodeHandlers(services.node(), settings, metrics, doors).addTo(routes);
    return routes.build();
  }
}
