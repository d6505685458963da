package dev.space.app;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.host.ProcessIdentity;
import dev.space.http.Json;
import dev.space.image.TestImages;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import tools.jackson.databind.JsonNode;

/// A daemon in a process of its own, on a data directory of its own, with real VMs, as a client
/// sees it. Kernel, template and base snapshots are shared by all of one test run.
final class RealDaemon implements AutoCloseable {

  /// The shape that tests use; small, because memory and boots cost.
  static final String SHAPE = "\"resources\":{\"vcpus\":1,\"memory_mib\":256,\"disk_mib\":256}";

  private static final Duration CALL = Duration.ofSeconds(90);
  private static final Path ROOT = makeRoot();

  private final Path dir;
  private final Process process;
  private final HttpClient client = HttpClient.newHttpClient();
  private final String control;
  private final String key;
  private boolean forgotten;

  /// An answer of the API.
  record Answer(int status, JsonNode body) {}

  record Session(String id, String url, String token) {}

  /// One event of an attach stream; `seq` is 0 when it has no number.
  record Event(long seq, String name, JsonNode data) {}

  private RealDaemon(Path dir, Process process) {
    this.dir = dir;
    this.process = process;
    Path file = dir.resolve("daemon.json");
    Awaitility.await()
        .atMost(Duration.ofSeconds(90))
        .pollInterval(Duration.ofMillis(50))
        .until(() -> !process.isAlive() || isOf(file, process.pid()));
    assertThat(process.isAlive()).as(() -> "the daemon runs; it said: " + log(dir)).isTrue();
    this.control = json(file).path("control_url").asString();
    this.key = read(dir.resolve("api-key")).strip();
  }

  private static boolean isOf(Path file, long pid) {
    return Files.exists(file) && json(file).path("pid").asLong() == pid;
  }

  private static Path makeRoot() {
    try {
      Path root = Files.createTempDirectory("space-life-");
      Files.createDirectory(root.resolve("base"));
      Runtime.getRuntime().addShutdownHook(new Thread(() -> remove(root)));
      return root;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Ends what still runs below a directory and removes it.
  static void remove(Path root) {
    vms(root).values().forEach(ProcessIdentity::kill);
    try (Stream<Path> all = Files.walk(root)) {
      all.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
    } catch (IOException | UncheckedIOException e) {
      // The operating system clears its temporary files.
    }
  }

  /// A data directory that is set up, with nothing in it.
  static Path prepare(String name) throws IOException {
    return prepare(Files.createDirectory(ROOT.resolve(name)), ROOT.resolve("base"));
  }

  /// The same with base snapshots apart from those of other monitors.
  static Path prepareApart(String name, String base) throws IOException {
    return prepare(
        Files.createDirectory(ROOT.resolve(name)), Files.createDirectories(ROOT.resolve(base)));
  }

  static Path prepare(Path dir, Path base) throws IOException {
    TestImages.boot();
    for (String part : List.of("kernel", "boot")) {
      Files.createSymbolicLink(dir.resolve(part), TestImages.data().resolve(part));
    }
    // What a test builds stays its own.
    Path templates = Files.createDirectory(dir.resolve("templates"));
    try (Stream<Path> all = Files.list(TestImages.data().resolve("templates"))) {
      for (Path one : all.toList()) {
        Files.createSymbolicLink(templates.resolve(one.getFileName()), one);
      }
    }
    if (!base.startsWith(dir)) {
      Files.createSymbolicLink(dir.resolve("base"), base);
    }
    return dir;
  }

  static ProcessBuilder command(Path dir, String... settings) {
    List<String> argv = new ArrayList<>();
    argv.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    argv.addAll(List.of("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    argv.addAll(
        List.of(
            "--enable-native-access=ALL-UNNAMED", "-Dspace.home=" + Path.of("").toAbsolutePath()));
    argv.addAll(
        List.of("-cp", System.getProperty("java.class.path"), "dev.space.cli.Main", "serve"));
    argv.addAll(List.of("--listen", "127.0.0.1:0", "--data-listen", "127.0.0.1:0"));
    argv.addAll(List.of("--set", "e2b.listen=127.0.0.1:0"));
    for (String setting : settings) {
      argv.addAll(List.of("--set", setting));
    }
    var builder = new ProcessBuilder(argv);
    builder.environment().put("SPACE_DATA_DIR", dir.toString());
    builder.environment().put("SPACE_BOOT_AGENT", TestImages.agent().toString());
    return builder
        .redirectErrorStream(true)
        .redirectOutput(ProcessBuilder.Redirect.appendTo(dir.resolve("log").toFile()));
  }

  /// Starts a daemon and returns when it is ready.
  static RealDaemon start(Path dir, String... settings) throws IOException {
    return new RealDaemon(dir, command(dir, settings).start());
  }

  /// `kill -9`.
  void kill() throws InterruptedException {
    process.destroyForcibly();
    process.waitFor();
  }

  /// SIGTERM; gives the exit status.
  int terminate() throws InterruptedException {
    process.destroy();
    assertThat(process.waitFor(120, TimeUnit.SECONDS)).as("it stops").isTrue();
    return process.exitValue();
  }

  boolean alive() {
    return process.isAlive();
  }

  /// Leaves the VMs to the next daemon.
  void forget() {
    forgotten = true;
  }

  /// Ends the daemon and, unless another has them, all its VMs.
  @Override
  public void close() {
    process.destroyForcibly();
    client.shutdownNow();
    if (!forgotten) {
      vms().values().forEach(ProcessIdentity::kill);
    }
  }

  Path dir() {
    return dir;
  }

  static String log(Path dir) {
    return read(dir.resolve("log"));
  }

  static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static JsonNode json(Path file) {
    return Json.mapper().readTree(read(file));
  }

  // -- calls

  Answer call(String method, String target, String body, Map<String, String> headers) {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create(target.startsWith("http") ? target : control + target))
            .timeout(CALL)
            .header("authorization", "Bearer " + key)
            .header("content-type", "application/json")
            .method(
                method,
                body.isEmpty()
                    ? HttpRequest.BodyPublishers.noBody()
                    : HttpRequest.BodyPublishers.ofString(body));
    headers.forEach(request::header);
    try {
      HttpResponse<String> answer =
          client.send(request.build(), HttpResponse.BodyHandlers.ofString());
      String text = answer.body().isEmpty() ? "{}" : answer.body();
      return new Answer(answer.statusCode(), Json.mapper().readTree(text));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  Answer upload(String target, Path tar) throws IOException, InterruptedException {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(control + target))
            .header("authorization", "Bearer " + key)
            .header("content-type", "application/x-tar")
            .POST(HttpRequest.BodyPublishers.ofFile(tar))
            .build();
    HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
    return new Answer(answer.statusCode(), Json.mapper().readTree(answer.body()));
  }

  Answer get(String target) {
    return call("GET", target, "", Map.of());
  }

  Answer post(String target, String body) {
    return call("POST", target, body.isEmpty() ? "{}" : body, Map.of());
  }

  /// Waits for the operation an answer tells of, which must succeed.
  JsonNode done(Answer accepted) {
    JsonNode ended = ended(accepted);
    assertThat(ended.path("state").asString()).as(ended.toString()).isEqualTo("succeeded");
    return ended;
  }

  /// Waits for the end of the operation an answer tells of.
  JsonNode ended(Answer accepted) {
    assertThat(accepted.status()).as(accepted.body().toString()).isEqualTo(202);
    String id = accepted.body().path("id").asString();
    long end = System.nanoTime() + CALL.toNanos();
    while (true) {
      JsonNode now = get("/v1/operations/" + id + "?wait=20s").body();
      if (List.of("succeeded", "failed", "cancelled").contains(now.path("state").asString())) {
        return now;
      }
      assertThat(System.nanoTime()).as("the end of " + now).isLessThan(end);
    }
  }

  /// Makes a sandbox.
  ///
  /// @param more further fields of the request
  String create(String... more) {
    return done(post("/v1/sandboxes", request(more))).path("sandbox_id").asString();
  }

  static String request(String... more) {
    return "{\"template\":\"base\","
        + SHAPE
        + (more.length == 0 ? "" : ",")
        + String.join(",", more)
        + "}";
  }

  static String path(String id) {
    return "/v1/sandboxes/" + id;
  }

  Answer ask(String id, String verb) {
    return post(path(id) + "/" + verb, "");
  }

  JsonNode act(String id, String verb) {
    return done(ask(id, verb));
  }

  void delete(String id) {
    done(call("DELETE", path(id), "", Map.of()));
  }

  String state(String id) {
    Answer answer = get(path(id));
    return answer.status() == 404 ? "absent" : answer.body().path("state").asString();
  }

  void awaitState(String id, String state, Duration atMost) {
    Awaitility.await()
        .atMost(atMost)
        .pollInterval(Duration.ofMillis(50))
        .until(() -> state(id).equals(state));
  }

  /// Ids of the sandboxes there are.
  TreeSet<String> sandboxes() {
    var ids = new TreeSet<String>();
    get("/v1/sandboxes?limit=1000")
        .body()
        .path("items")
        .forEach(s -> ids.add(s.path("id").asString()));
    return ids;
  }

  // -- sessions

  Session session(String id, String script) {
    Answer made =
        post(
            path(id) + "/sessions",
            Json.text(Map.of("command", script, "start", true, "user", "root")));
    assertThat(made.status()).as(made.body().toString()).isEqualTo(201);
    return new Session(
        made.body().path("session").path("id").asString(),
        made.body().path("attach_url").asString(),
        made.body().path("attach_token").asString());
  }

  /// The same session with the address of this daemon.
  Session again(String sandboxId, Session session) {
    Answer made = post(path(sandboxId) + "/sessions/" + session.id() + "/attach", "");
    assertThat(made.status()).as(made.body().toString()).isLessThan(300);
    return new Session(
        session.id(),
        made.body().path("attach_url").asString(),
        made.body().path("attach_token").asString());
  }

  /// Reads a stream until an event is enough, or it ends.
  List<Event> attach(Session session, long after, Predicate<Event> enough) {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(session.url() + "?after=" + after))
            .header("authorization", "Bearer " + session.token())
            .build();
    var events = new ArrayList<Event>();
    try {
      var answer = client.send(request, HttpResponse.BodyHandlers.ofInputStream());
      try (var in =
          new BufferedReader(new InputStreamReader(answer.body(), StandardCharsets.UTF_8))) {
        assertThat(answer.statusCode()).isEqualTo(200);
        long seq = 0;
        String name = "";
        String line;
        while ((line = in.readLine()) != null) {
          if (line.startsWith("id: ")) {
            seq = Long.parseLong(line.substring(4));
          } else if (line.startsWith("event: ")) {
            name = line.substring(7);
          } else if (line.startsWith("data: ")) {
            var event = new Event(seq, name, Json.mapper().readTree(line.substring(6)));
            events.add(event);
            seq = 0;
            if (enough.test(event)) {
              return events;
            }
          }
        }
        return events;
      }
    } catch (IOException e) {
      return events;
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  static String text(List<Event> events) {
    var out = new StringBuilder();
    events.stream()
        .filter(event -> event.name().equals("stdout"))
        .forEach(event -> out.append(event.data().path("text").asString()));
    return out.toString();
  }

  /// Runs a script and gives its output; it must exit with 0.
  String sh(String id, String script) {
    List<Event> events = attach(session(id, script), 0, event -> false);
    assertThat(events).as("the stream of %s", script).isNotEmpty();
    Event last = events.getLast();
    assertThat(last.name()).as("the end of %s: %s", script, events).isEqualTo("exit");
    assertThat(last.data().path("code").asInt(-1)).as("%s: %s", script, events).isZero();
    return text(events);
  }

  // -- what the host sees

  /// VM processes of this data directory, by the directory they work in.
  Map<String, ProcessIdentity> vms() {
    return vms(dir);
  }

  static Map<String, ProcessIdentity> vms(Path root) {
    Map<String, ProcessIdentity> found = new TreeMap<>();
    for (ProcessIdentity process : ProcessIdentity.all()) {
      List<String> arguments = process.arguments();
      // QEMU's and Firecracker's processes name a file in their VM's directory.
      int qemu = arguments.indexOf("-pidfile");
      int firecracker = arguments.indexOf("--api-sock");
      int at = Math.max(qemu, firecracker);
      if (at >= 0 && arguments.get(at + 1).startsWith(root + "/")) {
        String[] parts = arguments.get(at + 1).split("/");
        found.put(parts[parts.length - (firecracker >= 0 ? 3 : 2)], process);
      }
    }
    return found;
  }

  TreeSet<String> names(String part) {
    try (Stream<Path> all = Files.list(dir.resolve(part))) {
      return new TreeSet<>(all.map(path -> path.getFileName().toString()).toList());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
