package dev.space.api;

import dev.space.core.event.LifecycleEvent;
import dev.space.core.node.NodeRuntime;
import dev.space.core.sandbox.SandboxState;
import dev.space.http.RequestObserver;
import io.prometheus.metrics.core.metrics.Counter;
import io.prometheus.metrics.core.metrics.CounterWithCallback;
import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import io.prometheus.metrics.core.metrics.Histogram;
import io.prometheus.metrics.expositionformats.PrometheusTextFormatWriter;
import io.prometheus.metrics.instrumentation.jvm.JvmMetrics;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import io.prometheus.metrics.model.snapshots.Unit;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntSupplier;
import java.util.function.Supplier;

/// Counters of the service in Prometheus' text format. Labels come from fixed sets, never from
/// callers: no tenant can see another's names in them, and their number is bounded.
public final class ServiceMetrics implements RequestObserver {
  static final String CONTENT_TYPE = PrometheusTextFormatWriter.CONTENT_TYPE;

  private static final int STATUS_CLASS = 100;

  private final PrometheusRegistry registry = new PrometheusRegistry();
  private final PrometheusTextFormatWriter writer =
      PrometheusTextFormatWriter.builder().setIncludeCreatedTimestamps(false).build();
  private final Counter requests;
  private final Histogram seconds;
  private final Counter events;
  private final AtomicReference<IntSupplier> open = new AtomicReference<>(() -> 0);

  public ServiceMetrics(NodeRuntime node) {
    JvmMetrics.builder().register(registry);
    requests =
        Counter.builder()
            .name("space_http_requests_total")
            .help("Requests that ended, by listener, method, route and class of status.")
            .labelNames("listener", "method", "route", "status")
            .register(registry);
    seconds =
        Histogram.builder()
            .name("space_http_request_duration_seconds")
            .help("How long requests took, streams included.")
            .unit(Unit.SECONDS)
            .classicOnly()
            .classicUpperBounds(0.001, 0.005, 0.025, 0.1, 0.5, 2, 10, 60)
            .labelNames("listener")
            .register(registry);
    events =
        Counter.builder()
            .name("space_events_total")
            .help("Lifecycle events, by type.")
            .labelNames("type")
            .register(registry);
    gauge(
        "space_http_open_requests", "Requests and streams open now.", () -> open.get().getAsInt());
    gauge("space_vms", "VMs on this node, warm ones included.", () -> node.capacity().vms());
    gauge("space_vms_max", "VMs this node may have.", () -> node.capacity().vmsMax());
    gauge("space_vms_warm", "Idle VMs that wait for a create.", () -> node.capacity().warm());
    gauge(
        "space_memory_promised_bytes",
        "Memory promised to guests.",
        () -> node.capacity().memoryPromisedBytes());
    gauge(
        "space_disk_free_bytes",
        "Free space of the data directory.",
        () -> node.capacity().diskFreeBytes());
  }

  private interface Reading {
    double now();
  }

  private void gauge(String name, String help, Reading reading) {
    GaugeWithCallback.builder()
        .name(name)
        .help(help)
        .callback(callback -> callback.call(reading.now()))
        .register(registry);
  }

  /// Where the number of open requests comes from, once the server is up.
  public void openRequests(IntSupplier count) {
    open.set(count);
  }

  /// Where the number of sandboxes in each state comes from.
  public void sandboxes(Supplier<Map<SandboxState, Long>> counts) {
    GaugeWithCallback.builder()
        .name("space_sandboxes")
        .help("Sandboxes of all projects, by state.")
        .labelNames("state")
        .callback(
            callback -> counts.get().forEach((state, count) -> callback.call(count, state.wire())))
        .register(registry);
  }

  /// Where the counters of the VM monitor come from.
  public void monitor(Supplier<Map<String, Long>> counters) {
    CounterWithCallback.builder()
        .name("space_vmm_total")
        .help("What the VM monitor counts since the service's start, by its own names.")
        .labelNames("what")
        .callback(callback -> counters.get().forEach((what, count) -> callback.call(count, what)))
        .register(registry);
  }

  /// Counts a lifecycle event; made for `EventService.listen`.
  public void count(LifecycleEvent event) {
    events.labelValues(event.type()).inc();
  }

  /// The registry, for counters of other parts.
  public PrometheusRegistry registry() {
    return registry;
  }

  @Override
  public void ended(String listener, String method, String route, int status, Duration took) {
    requests
        .labelValues(listener, method, route, status == 0 ? "cut" : status / STATUS_CLASS + "xx")
        .inc();
    seconds.labelValues(listener).observe(took.toNanos() / 1e9);
  }

  byte[] text() throws IOException {
    var out = new ByteArrayOutputStream();
    writer.write(out, registry.scrape());
    return out.toByteArray();
  }
}
