package dev.space.app;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import dev.space.app.E2bWire.Answer;
import dev.space.app.E2bWire.Box;
import dev.space.app.E2bWire.Streamed;
import dev.space.app.E2bWire.Streamed.Envelope;
import dev.space.e2b.proto.filesystem.CreateWatcherRequest;
import dev.space.e2b.proto.filesystem.CreateWatcherResponse;
import dev.space.e2b.proto.filesystem.EventType;
import dev.space.e2b.proto.filesystem.FileType;
import dev.space.e2b.proto.filesystem.FilesystemEvent;
import dev.space.e2b.proto.filesystem.GetWatcherEventsRequest;
import dev.space.e2b.proto.filesystem.GetWatcherEventsResponse;
import dev.space.e2b.proto.filesystem.ListDirRequest;
import dev.space.e2b.proto.filesystem.ListDirResponse;
import dev.space.e2b.proto.filesystem.MakeDirRequest;
import dev.space.e2b.proto.filesystem.MakeDirResponse;
import dev.space.e2b.proto.filesystem.MoveRequest;
import dev.space.e2b.proto.filesystem.RemoveRequest;
import dev.space.e2b.proto.filesystem.RemoveWatcherRequest;
import dev.space.e2b.proto.filesystem.StatRequest;
import dev.space.e2b.proto.filesystem.StatResponse;
import dev.space.e2b.proto.filesystem.WatchDirRequest;
import dev.space.e2b.proto.filesystem.WatchDirResponse;
import dev.space.e2b.proto.process.CloseStdinRequest;
import dev.space.e2b.proto.process.ConnectRequest;
import dev.space.e2b.proto.process.ListRequest;
import dev.space.e2b.proto.process.ListResponse;
import dev.space.e2b.proto.process.ProcessConfig;
import dev.space.e2b.proto.process.ProcessEvent;
import dev.space.e2b.proto.process.ProcessInput;
import dev.space.e2b.proto.process.ProcessSelector;
import dev.space.e2b.proto.process.SendInputRequest;
import dev.space.e2b.proto.process.SendSignalRequest;
import dev.space.e2b.proto.process.Signal;
import dev.space.e2b.proto.process.StartRequest;
import dev.space.e2b.proto.process.StartResponse;
import dev.space.e2b.proto.process.StreamInputRequest;
import java.io.IOException;
import java.net.http.HttpRequest;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// E2B's protocol as clients other than its SDKs may speak it: the binary codec of Connect, unary
/// and streaming, and what browsers ask first.
class E2bWireTest {

  @TempDir static Path data;
  private static E2bWire wire = none();
  private static Box box = new Box("", Map.of());

  @SuppressWarnings("NullAway") // set before any test
  private static E2bWire none() {
    return null;
  }

  @BeforeAll
  static void start() throws IOException {
    wire = E2bWire.start(data, Map.of());
    box = wire.create("{\"templateID\":\"base\"}");
  }

  @AfterAll
  static void stop() {
    wire.close();
  }

  private static byte[] ok(Answer answer) {
    assertThat(answer.status()).as(() -> new String(answer.body(), UTF_8)).isEqualTo(200);
    assertThat(answer.headers()).containsEntry("content-type", "application/proto");
    return answer.body();
  }

  private static StartRequest command(String script, boolean stdin) {
    return StartRequest.newBuilder()
        .setProcess(
            ProcessConfig.newBuilder().setCmd("/bin/bash").addAllArgs(List.of("-l", "-c", script)))
        .setStdin(stdin)
        .build();
  }

  private static ProcessEvent event(Envelope envelope) throws IOException {
    assertThat(envelope.end()).as(() -> new String(envelope.body(), UTF_8)).isFalse();
    return StartResponse.parseFrom(envelope.body()).getEvent();
  }

  @Test
  void filesInTheBinaryCodec() throws Exception {
    var made =
        MakeDirResponse.parseFrom(
            ok(
                wire.unary(
                    box,
                    "filesystem.Filesystem/MakeDir",
                    MakeDirRequest.newBuilder().setPath("/tmp/wire/a").build())));
    assertThat(made.getEntry().getPath()).isEqualTo("/tmp/wire/a");
    assertThat(made.getEntry().getType()).isEqualTo(FileType.FILE_TYPE_DIRECTORY);
    ok(
        wire.unary(
            box,
            "filesystem.Filesystem/Move",
            MoveRequest.newBuilder()
                .setSource("/tmp/wire/a")
                .setDestination("/tmp/wire/b")
                .build()));
    var listed =
        ListDirResponse.parseFrom(
            ok(
                wire.unary(
                    box,
                    "filesystem.Filesystem/ListDir",
                    ListDirRequest.newBuilder().setPath("/tmp/wire").build())));
    assertThat(listed.getEntriesList()).singleElement().matches(e -> e.getName().equals("b"));
    var stat =
        StatResponse.parseFrom(
            ok(
                wire.unary(
                    box,
                    "filesystem.Filesystem/Stat",
                    StatRequest.newBuilder().setPath("/tmp/wire/b").build())));
    assertThat(stat.getEntry().getName()).isEqualTo("b");
    ok(
        wire.unary(
            box,
            "filesystem.Filesystem/Remove",
            RemoveRequest.newBuilder().setPath("/tmp/wire").build()));
    Answer gone =
        wire.unary(
            box,
            "filesystem.Filesystem/Stat",
            StatRequest.newBuilder().setPath("/tmp/wire/b").build());
    // Errors of unary calls are JSON whatever the codec.
    assertThat(gone.status()).isEqualTo(404);
    assertThat(gone.headers()).containsEntry("content-type", "application/json");
    assertThat(gone.json().path("code").asString()).isEqualTo("not_found");
  }

  @Test
  void watchesInTheBinaryCodec() throws Exception {
    wire.unary(
        box,
        "filesystem.Filesystem/MakeDir",
        MakeDirRequest.newBuilder().setPath("/tmp/watched").build());
    var watcher =
        CreateWatcherResponse.parseFrom(
            ok(
                wire.unary(
                    box,
                    "filesystem.Filesystem/CreateWatcher",
                    CreateWatcherRequest.newBuilder().setPath("/tmp/watched").build())));
    try (Streamed stream =
        wire.stream(
            box,
            "filesystem.Filesystem/WatchDir",
            WatchDirRequest.newBuilder().setPath("/tmp/watched").build())) {
      assertThat(WatchDirResponse.parseFrom(stream.next().body()).hasStart()).isTrue();
      for (int i = 0; i < 50; i++) {
        upload("/tmp/watched/file" + i);
        var drained =
            GetWatcherEventsResponse.parseFrom(
                ok(
                    wire.unary(
                        box,
                        "filesystem.Filesystem/GetWatcherEvents",
                        GetWatcherEventsRequest.newBuilder()
                            .setWatcherId(watcher.getWatcherId())
                            .build())));
        assertThat(drained.getEventsList())
            .extracting(FilesystemEvent::getName)
            .contains("file" + i)
            .containsOnly("file" + i);
      }
      WatchDirResponse first = WatchDirResponse.parseFrom(stream.next().body());
      assertThat(first.getFilesystem().getType()).isEqualTo(EventType.EVENT_TYPE_CREATE);
      assertThat(first.getFilesystem().getName()).isEqualTo("file0");
    }
    ok(
        wire.unary(
            box,
            "filesystem.Filesystem/RemoveWatcher",
            RemoveWatcherRequest.newBuilder().setWatcherId(watcher.getWatcherId()).build()));
    try (Streamed missing =
        wire.stream(
            box,
            "process.Process/Connect",
            ConnectRequest.newBuilder()
                .setProcess(ProcessSelector.newBuilder().setPid(999_999))
                .build())) {
      Envelope end = missing.next();
      assertThat(end.end()).isTrue();
      assertThat(new String(end.body(), UTF_8)).contains("\"code\":\"not_found\"");
    }
  }

  private static void upload(String path) {
    Map<String, String> headers = new HashMap<>(box.headers());
    headers.put("Content-Type", "application/octet-stream");
    Answer answer =
        wire.call(
            "POST", "/files?path=" + path, headers, HttpRequest.BodyPublishers.ofString("hello"));
    assertThat(answer.status()).as(() -> new String(answer.body(), UTF_8)).isEqualTo(200);
  }

  @Test
  void processesInTheBinaryCodec() throws Exception {
    try (Streamed run =
        wire.stream(box, "process.Process/Start", command("echo hi; exit 3", false))) {
      assertThat(event(run.next()).getStart().getPid()).isPositive();
      assertThat(event(run.next()).getData().getStdout().toStringUtf8()).isEqualTo("hi\n");
      ProcessEvent end = event(run.next());
      assertThat(end.getEnd().getExitCode()).isEqualTo(3);
      assertThat(end.getEnd().getExited()).isTrue();
      Envelope last = run.next();
      assertThat(last.end()).isTrue();
      assertThat(new String(last.body(), UTF_8)).isEqualTo("{}");
    }
  }

  @Test
  void inputAndSignalsInTheBinaryCodec() throws Exception {
    try (Streamed cat = wire.stream(box, "process.Process/Start", command("cat", true))) {
      int pid = event(cat.next()).getStart().getPid();
      ProcessSelector who = ProcessSelector.newBuilder().setPid(pid).build();
      ok(
          wire.unary(
              box,
              "process.Process/SendInput",
              SendInputRequest.newBuilder()
                  .setProcess(who)
                  .setInput(ProcessInput.newBuilder().setStdin(ByteString.copyFromUtf8("one\n")))
                  .build()));
      assertThat(event(cat.next()).getData().getStdout().toStringUtf8()).isEqualTo("one\n");
      try (Streamed input =
          wire.stream(
              box,
              "process.Process/StreamInput",
              StreamInputRequest.newBuilder()
                  .setStart(StreamInputRequest.Start.newBuilder().setProcess(who))
                  .build(),
              StreamInputRequest.newBuilder()
                  .setData(
                      StreamInputRequest.Data.newBuilder()
                          .setInput(
                              ProcessInput.newBuilder().setStdin(ByteString.copyFromUtf8("two\n"))))
                  .build())) {
        assertThat(input.next().end()).isFalse();
        assertThat(input.next().end()).isTrue();
      }
      assertThat(event(cat.next()).getData().getStdout().toStringUtf8()).isEqualTo("two\n");
      var listed =
          ListResponse.parseFrom(
              ok(wire.unary(box, "process.Process/List", ListRequest.getDefaultInstance())));
      assertThat(listed.getProcessesList()).anyMatch(p -> p.getPid() == pid);
      try (Streamed again =
          wire.stream(
              box,
              "process.Process/Connect",
              ConnectRequest.newBuilder().setProcess(who).build())) {
        assertThat(event(again.next()).getStart().getPid()).isEqualTo(pid);
        ok(
            wire.unary(
                box,
                "process.Process/CloseStdin",
                CloseStdinRequest.newBuilder().setProcess(who).build()));
        assertThat(event(again.next()).hasEnd()).isTrue();
      }
      assertThat(event(cat.next()).getEnd().getExitCode()).isZero();
    }
    try (Streamed sleep = wire.stream(box, "process.Process/Start", command("sleep 1000", false))) {
      int pid = event(sleep.next()).getStart().getPid();
      ok(
          wire.unary(
              box,
              "process.Process/SendSignal",
              SendSignalRequest.newBuilder()
                  .setProcess(ProcessSelector.newBuilder().setPid(pid))
                  .setSignal(Signal.SIGNAL_SIGKILL)
                  .build()));
      assertThat(event(sleep.next()).getEnd().getStatus()).isEqualTo("signal: killed");
    }
    Answer unknown =
        wire.unary(
            box,
            "process.Process/CloseStdin",
            CloseStdinRequest.newBuilder()
                .setProcess(ProcessSelector.newBuilder().setPid(999_999))
                .build());
    assertThat(unknown.json().path("code").asString()).isEqualTo("not_found");
  }

  @Test
  void aCodecOfTheOtherKindIsRefused() {
    Map<String, String> headers = new HashMap<>(box.headers());
    headers.put("Content-Type", "application/connect+proto");
    assertThat(
            wire.call(
                    "POST",
                    "/filesystem.Filesystem/Stat",
                    headers,
                    HttpRequest.BodyPublishers.ofByteArray(new byte[5]))
                .status())
        .isEqualTo(415);
    headers.put("Content-Type", "application/proto");
    assertThat(
            wire.call(
                    "POST",
                    "/process.Process/Start",
                    headers,
                    HttpRequest.BodyPublishers.ofByteArray(new byte[0]))
                .status())
        .isEqualTo(415);
  }

  @Test
  void browsersMayCall() {
    Answer preflight =
        wire.call(
            "OPTIONS",
            "/process.Process/Start",
            Map.of(
                "Access-Control-Request-Method", "POST",
                "Access-Control-Request-Headers", "x-access-token,connect-protocol-version"),
            HttpRequest.BodyPublishers.noBody());
    assertThat(preflight.status()).isEqualTo(204);
    assertThat(preflight.headers())
        .containsEntry("access-control-allow-origin", "*")
        .containsEntry("access-control-allow-headers", "x-access-token,connect-protocol-version");
    assertThat(wire.control("GET", "/v2/sandboxes", "").headers())
        .containsEntry("access-control-allow-origin", "*")
        .hasEntrySatisfying(
            "access-control-expose-headers", e -> assertThat(e).contains("X-Next-Token"));
  }
}
