package dev.space.dataplane;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.core.Ids;
import dev.space.core.access.ApiKeys;
import dev.space.core.guest.Guest;
import dev.space.core.session.FakeHost;
import dev.space.core.template.Resources;
import dev.space.core.vm.VmSpec;
import dev.space.http.Router;
import dev.space.http.TestServer;
import dev.space.store.SqliteStore;
import dev.space.vmm.simulated.SimulatedHost;
import dev.space.wire.EventReader;
import java.io.InputStream;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class FilesTest {

  private static final String BOX = "i0000000000000000001";
  private static final JsonMapper JSON = JsonMapper.builder().build();

  @TempDir private Path root;
  private final HttpClient http =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  private final java.util.ArrayDeque<AutoCloseable> open = new java.util.ArrayDeque<>();
  private String base = "";
  private String key = "";

  @BeforeEach
  void open() throws Exception {
    var clock = InstantSource.system();
    var simulated = new SimulatedHost(clock, new Random(1));
    Path directory = Files.createDirectories(root.resolve("vm"));
    Path image = Files.writeString(root.resolve("root.img"), "");
    Files.write(directory.resolve("disk.img"), new byte[8]);
    var vm =
        simulated
            .vmm()
            .boot(
                new VmSpec(
                    BOX, directory, Resources.DEFAULT, image, directory.resolve("disk.img")));
    open.push(vm::kill);
    var adoption =
        new Guest.Adoption(true, BOX, "box", Map.of(), Optional.empty(), Optional.empty());
    var link = simulated.connector().connect(vm, 1, adoption, Duration.ofSeconds(5));
    open.push(link);
    var host = new FakeHost();
    host.add(BOX, link);
    var store = SqliteStore.open(root.resolve("data"));
    open.push(store);
    var random = new SecureRandom();
    var keys = new ApiKeys(store, new Ids(random), random, clock);
    key = keys.create("p", "test").secret();
    var routes = Router.builder();
    new FileHandlers(new Doors(keys, host)).addTo(routes);
    var server = new TestServer(routes.build());
    open.push(server);
    base = server.url("/v1/sandboxes/" + BOX + "/files");
  }

  @AfterEach
  void close() throws Exception {
    http.close();
    while (!open.isEmpty()) {
      open.pop().close();
    }
  }

  private HttpRequest.Builder request(String rest, String path) {
    String at = URLEncoder.encode(path, StandardCharsets.UTF_8);
    return HttpRequest.newBuilder(
            URI.create(base + rest + (rest.contains("?") ? "&path=" : "?path=") + at))
        .header("X-API-Key", key);
  }

  private HttpResponse<byte[]> get(String rest, String path, String... headers) throws Exception {
    var request = request(rest, path);
    if (headers.length > 0) {
      request.headers(headers);
    }
    return http.send(request.build(), BodyHandlers.ofByteArray());
  }

  private HttpResponse<byte[]> put(String rest, String path, byte[] body) throws Exception {
    return http.send(
        request(rest, path).PUT(BodyPublishers.ofByteArray(body)).build(),
        BodyHandlers.ofByteArray());
  }

  private HttpResponse<byte[]> post(String rest, String json) throws Exception {
    return http.send(
        HttpRequest.newBuilder(URI.create(base + rest))
            .header("X-API-Key", key)
            .header("Content-Type", "application/json")
            .POST(BodyPublishers.ofString(json))
            .build(),
        BodyHandlers.ofByteArray());
  }

  private static JsonNode json(HttpResponse<byte[]> response) {
    return JSON.readTree(response.body());
  }

  private static byte[] random(int length) {
    byte[] bytes = new byte[length];
    new Random(length).nextBytes(bytes);
    return bytes;
  }

  @Test
  @DisplayName("behaviour 31: bytes, modes and any name survive going in and out")
  void files_come_back_as_they_went() throws Exception {
    for (String name :
        new String[] {
          "plain", "with space", "quo'te\"s", "line\nbreak", "größe-€-😀", "a+b&c=d%20"
        }) {
      String path = "/tmp/" + name;
      byte[] content = random(300_001);
      var written = put("?mode=0640", path, content);
      assertThat(written.statusCode()).isEqualTo(200);
      assertThat(json(written).path("mode").asString()).isEqualTo("0640");
      var read = get("", path);
      assertThat(read.body()).isEqualTo(content);
      assertThat(read.headers().firstValueAsLong("Content-Length")).hasValue(content.length);
      assertThat(read.headers().firstValue("Content-Disposition").orElse(""))
          .doesNotContain("\n", "€");
      assertThat(json(get("/stat", path)).path("name").asString()).isEqualTo(name);
    }
    put("", "/tmp/empty", new byte[0]);
    assertThat(get("", "/tmp/empty").body()).isEmpty();
  }

  @Test
  void ranges_and_tags_work() throws Exception {
    byte[] content = random(1000);
    put("", "/tmp/f", content);
    var whole = get("", "/tmp/f");
    String tag = whole.headers().firstValue("ETag").orElseThrow();
    assertThat(get("", "/tmp/f", "If-None-Match", tag).statusCode()).isEqualTo(304);
    for (int[] range : new int[][] {{0, 0}, {10, 19}, {999, 999}, {0, 999}}) {
      var part = get("", "/tmp/f", "Range", "bytes=" + range[0] + "-" + range[1]);
      assertThat(part.statusCode()).isEqualTo(206);
      assertThat(part.headers().firstValue("Content-Range"))
          .contains("bytes " + range[0] + "-" + range[1] + "/1000");
      assertThat(part.body())
          .isEqualTo(java.util.Arrays.copyOfRange(content, range[0], range[1] + 1));
    }
    assertThat(get("", "/tmp/f", "Range", "bytes=-5").body())
        .isEqualTo(java.util.Arrays.copyOfRange(content, 995, 1000));
    assertThat(get("", "/tmp/f", "Range", "bytes=990-5000").body()).hasSize(10);
    var beyond = get("", "/tmp/f", "Range", "bytes=1000-");
    assertThat(beyond.statusCode()).isEqualTo(416);
    assertThat(beyond.headers().firstValue("Content-Range")).contains("bytes */1000");
    assertThat(get("", "/tmp/f", "Range", "lines=1-2").statusCode()).isEqualTo(200);
    assertThat(get("", "/tmp/f", "Range", "bytes=0-1", "If-Range", "\"other\"").statusCode())
        .isEqualTo(200);
    var head =
        http.send(
            request("", "/tmp/f").method("HEAD", BodyPublishers.noBody()).build(),
            BodyHandlers.ofByteArray());
    assertThat(head.statusCode()).isEqualTo(200);
    assertThat(head.headers().firstValueAsLong("Content-Length")).hasValue(1000);
  }

  @Test
  void directories_are_made_listed_moved_and_removed() throws Exception {
    assertThat(post("/mkdir", "{\"path\":\"/tmp/a/b\",\"mode\":\"0750\"}").statusCode())
        .isEqualTo(201);
    put("", "/tmp/a/b/f1", random(10));
    put("", "/tmp/a/f2", random(20));
    var deep = json(get("/list?depth=2", "/tmp/a")).path("entries");
    assertThat(deep.valueStream().map(e -> e.path("name").asString()))
        .containsExactlyInAnyOrder("b", "f1", "f2");
    assertThat(json(get("/list", "/tmp/a")).path("entries").size()).isEqualTo(2);
    var moved = post("/move", "{\"source\":\"/tmp/a/f2\",\"destination\":\"/tmp/a/b/f3\"}");
    assertThat(json(moved).path("path").asString()).isEqualTo("/tmp/a/b/f3");
    assertThat(
            post("/move", "{\"source\":\"/tmp/a/b/f1\",\"destination\":\"/tmp/a/b/f3\"}")
                .statusCode())
        .isEqualTo(409);
    var removed =
        http.send(
            request("?recursive=true", "/tmp/a").DELETE().build(), BodyHandlers.ofByteArray());
    assertThat(removed.statusCode()).isEqualTo(200);
    assertThat(get("/stat", "/tmp/a").statusCode()).isEqualTo(404);
  }

  @Test
  @DisplayName("behaviour 38: refusals name their reason")
  void refusals_are_told() throws Exception {
    assertThat(get("", "/tmp/nothing").statusCode()).isEqualTo(404);
    assertThat(get("", "/tmp").statusCode()).isEqualTo(422);
    assertThat(get("?x=1", "/tmp").statusCode()).isEqualTo(400);
    assertThat(get("/list?depth=0", "/tmp").statusCode()).isEqualTo(400);
    assertThat(get("/list", "/tmp/nothing").statusCode()).isEqualTo(404);
    assertThat(put("?mode=9", "/tmp/f", new byte[0]).statusCode()).isEqualTo(400);
    assertThat(put("?atomic=true&offset=1", "/tmp/f", new byte[0]).statusCode()).isEqualTo(400);
    var bare = HttpRequest.newBuilder(URI.create(base + "?path=/tmp")).build();
    assertThat(http.send(bare, BodyHandlers.discarding()).statusCode()).isEqualTo(401);
  }

  @Test
  @DisplayName("behaviour 31: whole trees go out and in as tar")
  void trees_go_out_and_in() throws Exception {
    put("", "/tmp/t/one", random(1000));
    put("?mode=0755", "/tmp/t/deep/two", random(70_000));
    var tar = get("/tree", "/tmp/t");
    assertThat(tar.statusCode()).isEqualTo(200);
    var written = put("/tree", "/tmp/copy", tar.body());
    assertThat(written.statusCode()).isEqualTo(200);
    assertThat(get("", "/tmp/copy/deep/two").body()).isEqualTo(random(70_000));
    assertThat(json(get("/stat", "/tmp/copy/deep/two")).path("mode").asString()).isEqualTo("0755");
    assertThat(get("/tree", "/tmp/nothing").statusCode()).isEqualTo(404);
  }

  @Test
  @DisplayName("behaviour 35: a watch tells every change after it is armed")
  void a_watch_tells_changes() throws Exception {
    post("/mkdir", "{\"path\":\"/tmp/w\"}");
    HttpResponse<InputStream> response =
        http.send(request("/watch?entries=true", "/tmp/w").build(), BodyHandlers.ofInputStream());
    var events = new EventReader(response.body());
    assertThat(events.next().orElseThrow().name()).isEqualTo("armed");
    put("?atomic=false", "/tmp/w/f", random(10));
    var event = events.next().orElseThrow();
    assertThat(event.name()).isEqualTo("create");
    assertThat(JSON.readTree(event.data()).path("name").asString()).isEqualTo("f");
    response.body().close();
  }
}
