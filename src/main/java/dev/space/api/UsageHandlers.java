package dev.space.api;

import dev.space.core.access.Caller;
import dev.space.core.guest.GuestStats;
import dev.space.core.usage.UsageSample;
import dev.space.core.usage.UsageService;
import dev.space.http.Exchange;
import dev.space.http.Json;
import dev.space.http.Router;
import java.util.List;
import java.util.Optional;

/// `/v1/sandboxes/{id}/metrics`: what a sandbox uses, now and over time.
final class UsageHandlers {

  private final UsageService usage;
  private final Doors doors;

  UsageHandlers(UsageService usage, Doors doors) {
    this.usage = usage;
    this.doors = doors;
  }

  void addTo(Router.Builder routes) {
    routes.get("/v1/sandboxes/{id}/metrics", doors.keyed(this::metrics));
  }

  /// One sample; sizes in bytes.
  record SampleJson(
      String at,
      Optional<Double> cpuPercent,
      int cpuCount,
      long memoryUsedBytes,
      long memoryCacheBytes,
      long memoryTotalBytes,
      long diskUsedBytes,
      long diskTotalBytes,
      int processes) {
    static SampleJson of(UsageSample sample) {
      GuestStats stats = sample.stats();
      return new SampleJson(
          Calls.text(sample.at()),
          sample.cpuPercent().map(percent -> Math.round(percent * 10) / 10.0),
          stats.cpuCount(),
          stats.memoryUsed(),
          stats.memoryCache(),
          stats.memoryTotal(),
          stats.diskUsed(),
          stats.diskTotal(),
          stats.processCount());
    }
  }

  record MetricsJson(Optional<SampleJson> now, String interval, List<SampleJson> samples) {}

  private void metrics(Exchange exchange, Caller caller) {
    var query = exchange.query().allow("limit");
    int most = (int) query.integer("limit", UsageService.KEPT_MAX, 0, UsageService.KEPT_MAX);
    var found = usage.usage(caller, exchange.pathVariable("id"), most);
    Json.send(
        exchange,
        200,
        new MetricsJson(
            found.now().map(SampleJson::of),
            Calls.text(UsageService.INTERVAL),
            found.samples().stream().map(SampleJson::of).toList()));
  }
}
