package dev.space.e2b;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.GuestStats;
import dev.space.core.sandbox.Sandbox;
import dev.space.core.sandbox.SandboxService;
import dev.space.core.session.Session;
import dev.space.core.session.SessionService;
import dev.space.core.usage.UsageSample;
import dev.space.core.usage.UsageService;
import dev.space.http.Exchange;
import dev.space.http.Json;
import java.time.Instant;
import java.time.InstantSource;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// Metrics and logs of sandboxes over E2B's control plane.
final class MetricsRoutes {

  private static final int SANDBOXES_MAX = 100;
  private static final int SESSIONS_MAX = 1000;

  private final SandboxService sandboxes;
  private final SessionService sessions;
  private final UsageService usage;
  private final InstantSource clock;

  MetricsRoutes(
      SandboxService sandboxes, SessionService sessions, UsageService usage, InstantSource clock) {
    this.sandboxes = sandboxes;
    this.sessions = sessions;
    this.usage = usage;
    this.clock = clock;
  }

  /// What was sampled in the time asked for, and the sample of now when it lies therein.
  void one(Exchange exchange, Caller caller) {
    Sandbox sandbox = live(caller, exchange.pathVariable("id"));
    long now = clock.instant().getEpochSecond();
    long start = exchange.query().integer("start", 0, 0, Long.MAX_VALUE);
    long end = exchange.query().integer("end", now, 0, Long.MAX_VALUE);
    var used = usage.usage(caller, sandbox.id(), UsageService.KEPT_MAX);
    List<Map<String, Object>> samples = new ArrayList<>();
    for (UsageSample sample : used.samples()) {
      long at = sample.at().getEpochSecond();
      if (at >= start && at <= end) {
        samples.add(view(sample));
      }
    }
    Json.send(exchange, 200, samples);
  }

  void several(Exchange exchange, Caller caller) {
    String[] ids = exchange.query().required("sandbox_ids").split(",");
    if (ids.length > SANDBOXES_MAX) {
      throw new E2bError(400, "at most " + SANDBOXES_MAX + " sandboxes at once");
    }
    Map<String, Object> found = new LinkedHashMap<>();
    for (String id : ids) {
      try {
        usage.usage(caller, id, 1).now().ifPresent(sample -> found.put(id, view(sample)));
      } catch (SpaceException e) {
        if (e.code() != ErrorCode.SANDBOX_NOT_FOUND) {
          throw e;
        }
      }
    }
    Json.send(exchange, 200, Map.of("sandboxes", found));
  }

  private static Map<String, Object> view(UsageSample sample) {
    GuestStats stats = sample.stats();
    Map<String, Object> view = new LinkedHashMap<>();
    view.put("timestamp", sample.at().truncatedTo(ChronoUnit.MILLIS).toString());
    view.put("timestampUnix", sample.at().getEpochSecond());
    view.put("cpuCount", stats.cpuCount());
    view.put("cpuUsedPct", Math.round(100 * sample.cpuPercent().orElse(0.0)) / 100.0);
    view.put("memUsed", stats.memoryUsed());
    view.put("memTotal", stats.memoryTotal());
    view.put("memCache", stats.memoryCache());
    view.put("diskUsed", stats.diskUsed());
    view.put("diskTotal", stats.diskTotal());
    return view;
  }

  /// What a sandbox's log holds here: one line for each command that was run in it.
  void logs(Exchange exchange, Caller caller) {
    Sandbox sandbox = live(caller, exchange.pathVariable("id"));
    Instant start = exchange.query().one("start").map(MetricsRoutes::millis).orElse(Instant.EPOCH);
    List<Map<String, Object>> lines = new ArrayList<>();
    List<Map<String, Object>> entries = new ArrayList<>();
    for (Session session :
        sessions.list(caller, sandbox.id(), SESSIONS_MAX, Optional.empty()).items().reversed()) {
      if (session.createdAt().isBefore(start)) {
        continue;
      }
      String at = session.createdAt().truncatedTo(ChronoUnit.MILLIS).toString();
      String text =
          "process "
              + session.pid().map(String::valueOf).orElse("-")
              + " "
              + session.state().wire();
      // E2B's command line reads the line as JSON.
      Map<String, String> line = new LinkedHashMap<>();
      line.put("level", "info");
      line.put("logger", "process");
      line.put("message", text);
      lines.add(Map.of("timestamp", at, "line", Json.mapper().writeValueAsString(line)));
      entries.add(Map.of("timestamp", at, "level", "info", "message", text, "fields", Map.of()));
    }
    Json.send(exchange, 200, Map.of("logs", lines, "logEntries", entries));
  }

  private static Instant millis(String text) {
    try {
      return Instant.ofEpochMilli(Long.parseLong(text));
    } catch (NumberFormatException _) {
      throw new E2bError(400, "start must be a whole number of milliseconds");
    }
  }

  private Sandbox live(Caller caller, String id) {
    try {
      return sandboxes.get(caller, id);
    } catch (SpaceException e) {
      if (e.code() == ErrorCode.SANDBOX_NOT_FOUND) {
        throw new E2bError(
            404, "Sandbox \"" + id + "\" doesn't exist or you don't have access to it");
      }
      throw e;
    }
  }
}
