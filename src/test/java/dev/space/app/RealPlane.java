package dev.space.app;

import dev.space.http.Json;
import dev.space.image.TestImages;
import dev.space.wire.EventReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import tools.jackson.databind.JsonNode;

/// A whole service on the real QEMU driver with one sandbox, for all classes that are extended with
/// it: made at the first use, ended with the tests. Kernel, images and base snapshot are those of
/// [TestImages], so that only the first run boots.
final class RealPlane implements AutoCloseable {

  private static final String PORT_DOMAIN = "ports.test";

  private final HttpClient http =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  private final Path data;
  private final String sandbox;
  private String controlUrl = "";
  private String dataUrl = "";
  private Process daemon;

  /// Gives the service to the constructors of test classes.
  static final class Shared implements ParameterResolver {

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
      return parameter.getParameter().getType() == RealPlane.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
      return context
          .getRoot()
          .getStore(ExtensionContext.Namespace.GLOBAL)
          .computeIfAbsent(RealPlane.class, _ -> new RealPlane(), RealPlane.class);
    }
  }

  /// How a session ended.
  record Done(JsonNode exit, byte[] out, byte[] err, List<EventReader.Event> events) {
    String text() {
      return new String(out, StandardCharsets.UTF_8);
    }

    String errors() {
      return new String(err, StandardCharsets.UTF_8);
    }

    int code() {
      return exit.path("code").asInt(-1);
    }
  }

  /// A session as it was made.
  record Ticket(String id, String url, String token) {}

  private RealPlane() {
    try {
      String release = TestImages.boot().initramfs().getFileName().toString();
      Path bases =
          Files.createDirectories(
              TestImages.data().resolve("base-of-" + release.replace(".img", "")));
      data = Files.createTempDirectory("space-plane-");
      // Every VM runs as a user of its own.
      Files.setPosixFilePermissions(data, PosixFilePermissions.fromString("rwxr-xr-x"));
      for (String part : List.of("boot", "kernel", "templates", "probe")) {
        Path of = TestImages.data().resolve(part);
        if (Files.exists(of)) {
          Files.createSymbolicLink(data.resolve(part), of);
        }
      }
      Files.createSymbolicLink(data.resolve("base"), bases);
      daemon = start();
      sandbox =
          create("{\"template\":\"base\",\"env\":{\"FROM_CREATE\":\"a b'c\",\"BOTH\":\"create\"}}");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// The service as a process of its own, with a heap in which nothing large finds room.
  private Process start() {
    var command = new ArrayList<>(space("serve"));
    command.addAll(1, List.of("-Xmx160m", "-Dspace.home=" + Path.of("").toAbsolutePath()));
    var builder =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(data.resolve("serve.log").toFile()));
    builder.environment().put("SPACE_DATA_DIR", data.toString());
    builder.environment().put("SPACE_LISTEN", "127.0.0.1:0");
    builder.environment().put("SPACE_E2B_LISTEN", "");
    builder.environment().put("SPACE_DATA_LISTEN", "127.0.0.1:0");
    builder.environment().put("SPACE_PORT_DOMAIN", PORT_DOMAIN);
    builder.environment().put("SPACE_VMM", "qemu");
    try {
      Files.deleteIfExists(data.resolve("daemon.json"));
      Process started = builder.start();
      Awaitility.await()
          .atMost(PATIENCE)
          .until(() -> Files.exists(data.resolve("daemon.json")) || !started.isAlive());
      if (!started.isAlive()) {
        throw new AssertionError(Files.readString(data.resolve("serve.log")));
      }
      JsonNode where = Json.mapper().readTree(Files.readString(data.resolve("daemon.json")));
      controlUrl = where.path("control_url").asString();
      dataUrl = where.path("data_url").asString();
      return started;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// The daemon is killed, and another one takes over.
  void restart() {
    daemon.destroyForcibly().onExit().join();
    daemon = start();
  }

  Process daemon() {
    return daemon;
  }

  Path data() {
    return data;
  }

  String key() {
    try {
      return Files.readString(data.resolve("api-key")).strip();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  String controlUrl() {
    return controlUrl;
  }

  String dataUrl() {
    return dataUrl;
  }

  HttpClient http() {
    return http;
  }

  /// The sandbox that all tests share.
  String sandbox() {
    return sandbox;
  }

  // -- the control plane

  JsonNode call(String method, String target, String body) {
    HttpResponse<String> answer = send(method, controlUrl + target, body);
    if (answer.statusCode() >= 400) {
      throw new AssertionError(method + " " + target + ": " + answer.body());
    }
    return answer.body().isEmpty()
        ? Json.mapper().nullNode()
        : Json.mapper().readTree(answer.body());
  }

  HttpResponse<String> send(String method, String url, String body) {
    var request = authorized(url);
    if (!body.isEmpty()) {
      request.header("Content-Type", "application/json");
    }
    return send(
        request.method(
            method, body.isEmpty() ? BodyPublishers.noBody() : BodyPublishers.ofString(body)));
  }

  HttpResponse<String> send(HttpRequest.Builder request) {
    try {
      return http.send(request.build(), BodyHandlers.ofString());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  HttpRequest.Builder authorized(String url) {
    return HttpRequest.newBuilder(URI.create(url)).header("Authorization", "Bearer " + key());
  }

  /// Makes a sandbox and waits until it runs.
  String create(String body) {
    return finished(call("POST", "/v1/sandboxes", body)).path("sandbox_id").asString();
  }

  /// Asks for an operation on the shared sandbox and waits for its end.
  void operate(String verb) {
    finished(call("POST", "/v1/sandboxes/" + sandbox + "/" + verb, ""));
  }

  private JsonNode finished(JsonNode accepted) {
    JsonNode operation = accepted;
    while (!operation.path("state").asString().equals("succeeded")) {
      if (operation.path("state").asString().matches("failed|cancelled")) {
        throw new AssertionError(operation.toString());
      }
      operation =
          call("GET", "/v1/operations/" + operation.path("id").asString() + "?wait=30s", "");
    }
    return operation;
  }

  String sessions() {
    return "/v1/sandboxes/" + sandbox + "/sessions";
  }

  Ticket session(String body) {
    JsonNode made = call("POST", sessions(), body);
    return new Ticket(
        made.path("session").path("id").asString(),
        made.path("attach_url").asString(),
        made.path("attach_token").asString());
  }

  // -- the data plane

  /// Attaches to a session; the answer's body is its events.
  HttpResponse<InputStream> attach(Ticket ticket, long after, String more) {
    try {
      return http.send(
          HttpRequest.newBuilder(
                  URI.create(dataUrl + "/v1/attach/" + ticket.id() + "?after=" + after + more))
              .header("Authorization", "Bearer " + ticket.token())
              .build(),
          BodyHandlers.ofInputStream());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /// Reads a session from an event on to its exit.
  Done follow(Ticket ticket, long after, String more) {
    try (InputStream body = attach(ticket, after, more).body()) {
      var reader = new EventReader(body);
      var out = new ByteArrayOutputStream();
      var err = new ByteArrayOutputStream();
      var events = new ArrayList<EventReader.Event>();
      for (var next = reader.next(); next.isPresent(); next = reader.next()) {
        var event = next.get();
        events.add(event);
        JsonNode json =
            event.data().isEmpty()
                ? Json.mapper().nullNode()
                : Json.mapper().readTree(event.data());
        switch (event.name()) {
          case "stdout", "pty" -> out.writeBytes(bytes(json));
          case "stderr" -> err.writeBytes(bytes(json));
          case "exit" -> {
            return new Done(json, out.toByteArray(), err.toByteArray(), events);
          }
          default -> {}
        }
      }
      throw new AssertionError("no exit: " + events);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static byte[] bytes(JsonNode event) {
    return event.has("text")
        ? event.path("text").asString().getBytes(StandardCharsets.UTF_8)
        : Base64.getDecoder().decode(event.path("base64").asString());
  }

  Done run(String body) {
    return follow(session(body), 0, "");
  }

  /// Runs a line in the sandbox's shell.
  Done sh(String line) {
    return run("{\"command\":" + quoted(line) + "}");
  }

  static String quoted(String text) {
    return Json.mapper().writeValueAsString(text);
  }

  String files(String call, String path) {
    return dataUrl + "/v1/sandboxes/" + sandbox + "/files" + call + "?path=" + encoded(path);
  }

  String port(int port, String path) {
    return dataUrl + "/v1/sandboxes/" + sandbox + "/ports/" + port + path;
  }

  static String encoded(String text) {
    return dev.space.wire.WireClient.encode(text);
  }

  /// An answer of the data plane.
  JsonNode json(String url) {
    HttpResponse<String> answer = send("GET", url, "");
    if (answer.statusCode() >= 400) {
      throw new AssertionError(url + ": " + answer.body());
    }
    return Json.mapper().readTree(answer.body());
  }

  // -- the command line, as processes of their own

  List<String> space(String... words) {
    var command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("java.class.path"),
                "dev.space.cli.Main"));
    command.addAll(List.of(words));
    return command;
  }

  Process spaceProcess(Path out, String... words) {
    return process(out, space(words));
  }

  Process process(Path out, List<String> command) {
    var builder =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out.toFile());
    builder.environment().put("SPACE_DATA_DIR", data.toString());
    builder.environment().put("SPACE_URL", controlUrl());
    builder.environment().put("SPACE_DATA_URL", dataUrl());
    builder.environment().put("SPACE_API_KEY", key());
    try {
      return builder.start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public void close() {
    finished(call("DELETE", "/v1/sandboxes/" + sandbox, ""));
    http.shutdownNow();
    daemon.destroy();
    if (!daemon.onExit().orTimeout(60, TimeUnit.SECONDS).handle((_, e) -> e == null).join()) {
      daemon.destroyForcibly();
    }
    delete(data);
  }

  static void delete(Path folder) {
    try (var all = Files.walk(folder)) {
      for (Path path : all.sorted(java.util.Comparator.reverseOrder()).toList()) {
        Files.deleteIfExists(path);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// How long something may take on a busy machine that emulates its guests.
  static final Duration PATIENCE = Duration.ofSeconds(60);
}
