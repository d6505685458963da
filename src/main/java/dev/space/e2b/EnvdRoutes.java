package dev.space.e2b;

import dev.space.core.guest.GuestStats;
import dev.space.core.usage.UsageService;
import dev.space.e2b.proto.filesystem.CreateWatcherRequest;
import dev.space.e2b.proto.filesystem.GetWatcherEventsRequest;
import dev.space.e2b.proto.filesystem.ListDirRequest;
import dev.space.e2b.proto.filesystem.MakeDirRequest;
import dev.space.e2b.proto.filesystem.MoveRequest;
import dev.space.e2b.proto.filesystem.RemoveRequest;
import dev.space.e2b.proto.filesystem.RemoveWatcherRequest;
import dev.space.e2b.proto.filesystem.StatRequest;
import dev.space.e2b.proto.filesystem.WatchDirRequest;
import dev.space.e2b.proto.process.CloseStdinRequest;
import dev.space.e2b.proto.process.ConnectRequest;
import dev.space.e2b.proto.process.ListRequest;
import dev.space.e2b.proto.process.SendInputRequest;
import dev.space.e2b.proto.process.SendSignalRequest;
import dev.space.e2b.proto.process.StartRequest;
import dev.space.e2b.proto.process.UpdateRequest;
import dev.space.http.Exchange;
import dev.space.http.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/// What E2B's server inside a sandbox (port 49983) answers.
final class EnvdRoutes {

  private static final long MIB = 1024 * 1024;
  private static final String PROCESS = "/process.Process/";
  private static final String FILESYSTEM = "/filesystem.Filesystem/";

  private final ProcessRpc process;
  private final FilesystemRpc filesystem;
  private final FilesRoutes files;
  private final UsageService usage;

  EnvdRoutes(ProcessRpc process, FilesystemRpc filesystem, FilesRoutes files, UsageService usage) {
    this.process = process;
    this.filesystem = filesystem;
    this.files = files;
    this.usage = usage;
  }

  void handle(EnvdCall call) throws Exception {
    Exchange exchange = call.exchange();
    String path = exchange.rawPath();
    if (path.startsWith(PROCESS) && exchange.method().equals("POST")) {
      process(call, path.substring(PROCESS.length()));
    } else if (path.startsWith(FILESYSTEM) && exchange.method().equals("POST")) {
      filesystem(call, path.substring(FILESYSTEM.length()));
    } else {
      switch (exchange.method() + " " + path) {
        case "GET /files", "HEAD /files" -> files.get(call);
        case "POST /files" -> files.post(call);
        case "GET /envs" -> Json.send(exchange, 200, call.sandbox().env());
        case "GET /metrics" -> metrics(call);
        default -> throw new E2bError(404, "404 page not found");
      }
    }
  }

  private void process(EnvdCall call, String method) throws Exception {
    Exchange exchange = call.exchange();
    switch (method) {
      case "List" ->
          Connect.unary(exchange, ListRequest.getDefaultInstance(), _ -> process.list(call));
      case "Start" ->
          Connect.stream(
              exchange,
              StartRequest.getDefaultInstance(),
              (request, out) -> process.start(call, request, out));
      case "Connect" ->
          Connect.stream(
              exchange,
              ConnectRequest.getDefaultInstance(),
              (request, out) -> process.connect(call, request, out));
      case "Update" ->
          Connect.unary(exchange, UpdateRequest.getDefaultInstance(), r -> process.update(call, r));
      case "SendInput" ->
          Connect.unary(
              exchange, SendInputRequest.getDefaultInstance(), r -> process.sendInput(call, r));
      case "StreamInput" -> process.streamInput(call);
      case "SendSignal" ->
          Connect.unary(
              exchange, SendSignalRequest.getDefaultInstance(), r -> process.sendSignal(call, r));
      case "CloseStdin" ->
          Connect.unary(
              exchange, CloseStdinRequest.getDefaultInstance(), r -> process.closeStdin(call, r));
      default -> throw new E2bError(404, "404 page not found");
    }
  }

  private void filesystem(EnvdCall call, String method) throws Exception {
    Exchange exchange = call.exchange();
    switch (method) {
      case "Stat" ->
          Connect.unary(exchange, StatRequest.getDefaultInstance(), r -> filesystem.stat(call, r));
      case "MakeDir" ->
          Connect.unary(
              exchange, MakeDirRequest.getDefaultInstance(), r -> filesystem.makeDir(call, r));
      case "Move" ->
          Connect.unary(exchange, MoveRequest.getDefaultInstance(), r -> filesystem.move(call, r));
      case "ListDir" ->
          Connect.unary(
              exchange, ListDirRequest.getDefaultInstance(), r -> filesystem.listDir(call, r));
      case "Remove" ->
          Connect.unary(
              exchange, RemoveRequest.getDefaultInstance(), r -> filesystem.remove(call, r));
      case "WatchDir" ->
          Connect.stream(
              exchange,
              WatchDirRequest.getDefaultInstance(),
              (request, out) -> filesystem.watchDir(call, request, out));
      case "CreateWatcher" ->
          Connect.unary(
              exchange,
              CreateWatcherRequest.getDefaultInstance(),
              r -> filesystem.createWatcher(call, r));
      case "GetWatcherEvents" ->
          Connect.unary(
              exchange,
              GetWatcherEventsRequest.getDefaultInstance(),
              r -> filesystem.watcherEvents(call, r));
      case "RemoveWatcher" ->
          Connect.unary(
              exchange,
              RemoveWatcherRequest.getDefaultInstance(),
              r -> filesystem.removeWatcher(call, r));
      default -> throw new E2bError(404, "404 page not found");
    }
  }

  private void metrics(EnvdCall call) {
    var sample = usage.usage(call.caller(), call.sandbox().id(), 1).now();
    if (sample.isEmpty()) {
      E2bError.sandboxGone(call.exchange(), call.sandbox().id());
    } else {
      GuestStats stats = sample.get().stats();
      Map<String, Object> view = new LinkedHashMap<>();
      view.put("ts", sample.get().at().getEpochSecond());
      view.put("cpu_count", stats.cpuCount());
      view.put("cpu_used_pct", Math.round(100 * sample.get().cpuPercent().orElse(0.0)) / 100.0);
      view.put("mem_total", stats.memoryTotal());
      view.put("mem_used", stats.memoryUsed());
      view.put("mem_cache", stats.memoryCache());
      view.put("mem_total_mib", stats.memoryTotal() / MIB);
      view.put("mem_used_mib", stats.memoryUsed() / MIB);
      view.put("disk_used", stats.diskUsed());
      view.put("disk_total", stats.diskTotal());
      Json.send(call.exchange(), 200, view);
    }
  }
}
