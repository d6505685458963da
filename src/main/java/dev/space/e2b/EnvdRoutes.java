package dev.space.e2b;

import com.google.protobuf.Message;
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
import java.util.Set;

/// What E2B's server inside a sandbox (port 49983) answers.
final class EnvdRoutes {

  private static final long MIB = 1024 * 1024;
  private static final String PROCESS = "POST /process.Process/";
  private static final String FILESYSTEM = "POST /filesystem.Filesystem/";

  private final Map<String, Answer> answers = new LinkedHashMap<>();
  private final ProcessRpc process;
  private final FilesystemRpc filesystem;
  private final FilesRoutes files;
  private final UsageService usage;

  EnvdRoutes(ProcessRpc process, FilesystemRpc filesystem, FilesRoutes files, UsageService usage) {
    this.process = process;
    this.filesystem = filesystem;
    this.files = files;
    this.usage = usage;
    addHttp();
    addProcess();
    addFilesystem();
  }

  /// All that is answered, as `METHOD /path`.
  Set<String> routes() {
    return answers.keySet();
  }

  void handle(EnvdCall call) throws Exception {
    Exchange exchange = call.exchange();
    Answer answer = answers.get(exchange.method() + " " + exchange.rawPath());
    if (answer == null) {
      throw new E2bError(404, "404 page not found");
    }
    answer.to(call);
  }

  private void addHttp() {
    answers.put("GET /files", files::get);
    answers.put("HEAD /files", files::get);
    answers.put("POST /files", files::post);
    answers.put("GET /envs", call -> Json.send(call.exchange(), 200, call.sandbox().env()));
    answers.put("GET /metrics", this::metrics);
  }

  private void addProcess() {
    unary(PROCESS + "List", ListRequest.getDefaultInstance(), (call, _) -> process.list(call));
    stream(PROCESS + "Start", StartRequest.getDefaultInstance(), process::start);
    stream(PROCESS + "Connect", ConnectRequest.getDefaultInstance(), process::connect);
    unary(PROCESS + "Update", UpdateRequest.getDefaultInstance(), process::update);
    unary(PROCESS + "SendInput", SendInputRequest.getDefaultInstance(), process::sendInput);
    answers.put(PROCESS + "StreamInput", process::streamInput);
    unary(PROCESS + "SendSignal", SendSignalRequest.getDefaultInstance(), process::sendSignal);
    unary(PROCESS + "CloseStdin", CloseStdinRequest.getDefaultInstance(), process::closeStdin);
  }

  private void addFilesystem() {
    unary(FILESYSTEM + "Stat", StatRequest.getDefaultInstance(), filesystem::stat);
    unary(FILESYSTEM + "MakeDir", MakeDirRequest.getDefaultInstance(), filesystem::makeDir);
    unary(FILESYSTEM + "Move", MoveRequest.getDefaultInstance(), filesystem::move);
    unary(FILESYSTEM + "ListDir", ListDirRequest.getDefaultInstance(), filesystem::listDir);
    unary(FILESYSTEM + "Remove", RemoveRequest.getDefaultInstance(), filesystem::remove);
    stream(FILESYSTEM + "WatchDir", WatchDirRequest.getDefaultInstance(), filesystem::watchDir);
    unary(
        FILESYSTEM + "CreateWatcher",
        CreateWatcherRequest.getDefaultInstance(),
        filesystem::createWatcher);
    unary(
        FILESYSTEM + "GetWatcherEvents",
        GetWatcherEventsRequest.getDefaultInstance(),
        filesystem::watcherEvents);
    unary(
        FILESYSTEM + "RemoveWatcher",
        RemoveWatcherRequest.getDefaultInstance(),
        filesystem::removeWatcher);
  }

  @FunctionalInterface
  private interface Answer {
    void to(EnvdCall call) throws Exception;
  }

  @FunctionalInterface
  private interface Unary<Q extends Message> {
    Message answer(EnvdCall call, Q request) throws Exception;
  }

  @FunctionalInterface
  private interface Streaming<Q extends Message> {
    void answer(EnvdCall call, Q request, EnvelopeWriter out) throws Exception;
  }

  private <Q extends Message> void unary(String route, Q prototype, Unary<Q> rpc) {
    answers.put(
        route,
        call ->
            Connect.unary(call.exchange(), prototype, (Q request) -> rpc.answer(call, request)));
  }

  private <Q extends Message> void stream(String route, Q prototype, Streaming<Q> rpc) {
    answers.put(
        route,
        call ->
            Connect.stream(
                call.exchange(), prototype, (request, out) -> rpc.answer(call, request, out)));
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
