package dev.space.dataplane;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.space.Seeded;
import dev.space.core.Ids;
import dev.space.core.access.ApiKeys;
import dev.space.core.error.SpaceException;
import dev.space.core.session.AttachmentToken;
import dev.space.core.session.FakeHost;
import dev.space.core.session.ScriptedGuest;
import dev.space.core.store.Store;
import dev.space.http.HostDispatch;
import dev.space.http.Router;
import dev.space.http.TestServer;
import dev.space.http.WebSocketOptions;
import dev.space.store.SqliteStore;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.WebSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Arrays;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@DisplayName("behaviour 41: ports of a sandbox")
class PortsTest {

  private static final String BOX = "i0000000000000000001";

  @TempDir private Path root;
  private final HttpClient http =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  private final FakeHost host = new FakeHost();
  private final CountDownLatch goOn = new CountDownLatch(1);
  private Store store = unset();
  private TestServer inside = unset();
  private TestServer plane = unset();
  private PortTokens tokens = unset();
  private String key = "";
  private int port;

  @SuppressWarnings({"NullAway", "TypeParameterUnusedInFormals"}) // Set before each test.
  private static <T> T unset() {
    return null;
  }

  @BeforeEach
  void open() {
    host.add(BOX, new ScriptedGuest());
    store = SqliteStore.open(root.resolve("data"));
    var random = new SecureRandom();
    var clock = InstantSource.system();
    var keys = new ApiKeys(store, new Ids(random), random, clock);
    key = keys.create("p", "test").secret();
    tokens = new PortTokens(new AttachmentToken(new byte[AttachmentToken.KEY_BYTES]), clock);
    var ports = new PortHandlers(new Doors(keys, host), tokens, clock);
    var routes = Router.builder();
    ports.addTo(routes);
    plane = new TestServer(new HostDispatch(n -> ports.byHost(n, "ports.test"), routes.build()));
    inside = new TestServer(server());
    port = inside.address().getPort();
  }

  /// The server in the guest.
  private Router server() {
    return Router.builder()
        .any(
            "/echo/{rest...}",
            x -> {
              var seen = new StringBuilder(x.method() + " " + x.rawPath() + "?" + x.rawQuery());
              x.eachHeader((n, v) -> seen.append('\n').append(n).append(": ").append(v));
              x.status(207).header("X-Own", "yes");
              x.send("text/plain", seen.toString().getBytes(StandardCharsets.UTF_8));
            })
        .post(
            "/upload",
            x -> {
              long n = 0;
              byte[] buffer = new byte[65_536];
              for (int r = x.body().read(buffer); r >= 0; r = x.body().read(buffer)) {
                n += r;
              }
              x.send("text/plain", Long.toString(n).getBytes(StandardCharsets.UTF_8));
            })
        .get(
            "/events",
            x -> {
              var events = x.events();
              events.send("1", "tick", "one");
              goOn.await();
              events.send("2", "tick", "two");
            })
        .get("/length", x -> x.send("application/x-own", new byte[100_000]))
        .get(
            "/cut",
            x -> {
              var out = x.stream("text/plain", 1000);
              out.write(new byte[10]);
              x.abort();
            })
        .get(
            "/socket",
            x ->
                x.webSocket(
                    WebSocketOptions.DEFAULT,
                    socket -> {
                      socket.sendText("host " + x.host().orElse(""));
                      for (var m = socket.receive(); m.isPresent(); m = socket.receive()) {
                        if (m.get() instanceof dev.space.http.WebSocket.Message.Text(String t)) {
                          socket.sendText("echo " + t);
                        }
                      }
                    }))
        .build();
  }

  @AfterEach
  void close() {
    goOn.countDown();
    http.close();
    plane.close();
    inside.close();
    store.close();
  }

  private HttpRequest.Builder request(String path) {
    return HttpRequest.newBuilder(
        URI.create(plane.url("/v1/sandboxes/" + BOX + "/ports/" + port + path)));
  }

  private HttpResponse<String> get(String path, String... headers) throws Exception {
    var request = request(path);
    if (headers.length > 0) {
      request.headers(headers);
    }
    return http.send(request.build(), BodyHandlers.ofString());
  }

  private String token() {
    return tokens.sign(BOX, port, Instant.now().plusSeconds(60));
  }

  @Test
  void requests_and_answers_pass_without_what_let_the_client_in() throws Exception {
    var answer =
        get("/echo/a%20b/?x=1&y=%2F", "X-API-Key", key, "X-Custom", "mine", "Cookie", "a=b");
    assertThat(answer.statusCode()).isEqualTo(207);
    assertThat(answer.headers().firstValue("X-Own")).contains("yes");
    assertThat(answer.body())
        .startsWith("GET /echo/a%20b/?x=1&y=%2F\n")
        .contains("X-Custom: mine")
        .contains("Cookie: a=b")
        .contains("X-Forwarded-For: 127.0.0.1")
        .contains("X-Forwarded-Prefix: /v1/sandboxes/" + BOX + "/ports/" + port)
        .contains("Host: " + plane.address().getHostString() + ":" + plane.address().getPort())
        .doesNotContain(key);
    assertThat(get("/nothing", "X-API-Key", key).statusCode()).isEqualTo(404);
    assertThat(get("/length", "X-API-Key", key).body()).hasSize(100_000);
  }

  @Test
  void a_port_is_private() throws Exception {
    assertThat(get("/echo/").statusCode()).isEqualTo(401);
    assertThat(get("/echo/", PortHandlers.TOKEN_HEADER, "spat_x").statusCode()).isEqualTo(401);
    String other = tokens.sign(BOX, port + 1, Instant.now().plusSeconds(60));
    assertThat(get("/echo/", PortHandlers.TOKEN_HEADER, other).statusCode()).isEqualTo(403);
    String old = tokens.sign(BOX, port, Instant.now().minusSeconds(1));
    assertThat(get("/echo/", PortHandlers.TOKEN_HEADER, old).statusCode()).isEqualTo(401);
    var let = get("/echo/", PortHandlers.TOKEN_HEADER, token());
    assertThat(let.statusCode()).isEqualTo(207);
    assertThat(let.body()).doesNotContain("spat_");
  }

  @Test
  void a_token_in_the_query_becomes_a_cookie_that_the_server_never_sees() throws Exception {
    var first = get("/echo/?a=1&" + PortHandlers.TOKEN_NAME + "=" + token());
    assertThat(first.statusCode()).isEqualTo(303);
    String location = first.headers().firstValue("Location").orElseThrow();
    assertThat(location).endsWith("/echo/?a=1").doesNotContain("spat_");
    String cookie = first.headers().firstValue("Set-Cookie").orElseThrow();
    assertThat(cookie).contains("HttpOnly").contains("SameSite=Lax");
    var second = get("/echo/", "Cookie", "own=1; " + cookie.substring(0, cookie.indexOf(';')));
    assertThat(second.statusCode()).isEqualTo(207);
    assertThat(second.body()).contains("Cookie: own=1").doesNotContain("spat_");
  }

  @Test
  void only_a_token_that_opens_the_port_becomes_a_cookie() throws Exception {
    for (String odd : new String[] {"x;Domain=test", "spat_x", ""}) {
      var answer = get("/echo/?a=1&" + PortHandlers.TOKEN_NAME + "=" + odd, "X-API-Key", key);
      assertThat(answer.statusCode()).isEqualTo(207);
      assertThat(answer.headers().firstValue("Set-Cookie")).isEmpty();
      assertThat(answer.body()).startsWith("GET /echo/?a=1\n");
    }
  }

  @Test
  @DisplayName("behaviour 30: uploads stream, with a length and without")
  void large_bodies_stream() throws Exception {
    long size = 64L * 1024 * 1024;
    byte[] piece = new byte[1024 * 1024];
    for (var body :
        new HttpRequest.BodyPublisher[] {
          BodyPublishers.ofByteArrays(java.util.Collections.nCopies(64, piece)),
          BodyPublishers.fromPublisher(
              BodyPublishers.ofByteArrays(java.util.Collections.nCopies(64, piece)), size)
        }) {
      var answer =
          http.send(
              request("/upload").header("X-API-Key", key).POST(body).build(),
              BodyHandlers.ofString());
      assertThat(answer.body()).isEqualTo(Long.toString(size));
    }
  }

  @Test
  void events_pass_one_by_one() throws Exception {
    HttpResponse<InputStream> answer =
        http.send(
            request("/events").header("X-API-Key", key).build(), BodyHandlers.ofInputStream());
    var events = new dev.space.wire.EventReader(answer.body());
    assertThat(events.next().orElseThrow().data()).isEqualTo("one");
    goOn.countDown();
    assertThat(events.next().orElseThrow().data()).isEqualTo("two");
    assertThat(events.next()).isEmpty();
  }

  @Test
  void a_broken_answer_is_broken_and_a_closed_port_says_so() throws Exception {
    assertThatThrownBy(() -> get("/cut", "X-API-Key", key)).isInstanceOf(IOException.class);
    inside.close();
    var closed = get("/echo/", "X-API-Key", key);
    assertThat(closed.statusCode()).isEqualTo(502);
    assertThat(closed.body()).contains("port_closed");
  }

  @Test
  void a_port_that_opens_a_moment_later_is_reached() throws Exception {
    int later;
    try (var free = new java.net.ServerSocket(0)) {
      later = free.getLocalPort();
    }
    var request =
        HttpRequest.newBuilder(
                URI.create(plane.url("/v1/sandboxes/" + BOX + "/ports/" + later + "/x")))
            .header("X-API-Key", key)
            .build();
    var answer = http.sendAsync(request, BodyHandlers.ofString());
    try (var socket = new java.net.ServerSocket()) {
      await().pollDelay(Duration.ofMillis(120)).until(() -> true);
      socket.bind(new InetSocketAddress("127.0.0.1", later));
      try (Socket one = socket.accept()) {
        one.getOutputStream()
            .write("HTTP/1.0 200 OK\r\n\r\nto the end".getBytes(StandardCharsets.US_ASCII));
        one.shutdownOutput();
        assertThat(answer.join().body()).isEqualTo("to the end");
      }
    }
  }

  private static final class Texts implements WebSocket.Listener {
    final CopyOnWriteArrayList<String> all = new CopyOnWriteArrayList<>();

    @Override
    public CompletionStage<?> onText(WebSocket socket, CharSequence data, boolean last) {
      all.add(data.toString());
      socket.request(1);
      return java.util.concurrent.CompletableFuture.completedStage(null);
    }
  }

  @Test
  void web_sockets_pass_with_the_same_host_rule() {
    var texts = new Texts();
    var socket =
        http.newWebSocketBuilder()
            .subprotocols(PortHandlers.SUBPROTOCOL + token())
            .buildAsync(
                URI.create(
                    plane
                        .url("/v1/sandboxes/" + BOX + "/ports/" + port + "/socket")
                        .replace("http:", "ws:")),
                texts)
            .join();
    socket.sendText("hello", true).join();
    await().until(() -> texts.all.contains("echo hello"));
    assertThat(texts.all.getFirst()).isEqualTo("host 127.0.0.1:" + plane.address().getPort());
    socket.abort();
  }

  @Test
  void a_host_name_leads_to_its_port() throws Exception {
    try (Socket client = new Socket("127.0.0.1", plane.address().getPort())) {
      String name = port + "-" + BOX + ".ports.test";
      client
          .getOutputStream()
          .write(
              ("GET /echo/here HTTP/1.1\r\nHost: "
                      + name
                      + ":80\r\nX-API-Key: "
                      + key
                      + "\r\nConnection: close\r\n\r\n")
                  .getBytes(StandardCharsets.US_ASCII));
      String answer = new String(client.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      assertThat(answer)
          .startsWith("HTTP/1.1 207")
          .contains("GET /echo/here?")
          .contains("Host: " + name + ":80")
          .doesNotContain("X-Forwarded-Prefix");
    }
  }

  @Test
  void tokens_are_made_with_a_key() throws Exception {
    var request =
        HttpRequest.newBuilder(URI.create(plane.url("/v1/sandboxes/" + BOX + "/port-tokens")))
            .header("Content-Type", "application/json")
            .POST(BodyPublishers.ofString("{\"port\":" + port + "}"));
    assertThat(http.send(request.build(), BodyHandlers.ofString()).statusCode()).isEqualTo(401);
    var made = http.send(request.header("X-API-Key", key).build(), BodyHandlers.ofString());
    assertThat(made.statusCode()).isEqualTo(201);
    String token = made.body().replaceAll(".*\"token\":\"([^\"]+)\".*", "$1");
    assertThat(get("/echo/", PortHandlers.TOKEN_HEADER, token).statusCode()).isEqualTo(207);
  }

  @Test
  void any_bytes_are_a_head_or_refused() {
    byte[] begun = "HTTP/1.1 200 OK\r\n".getBytes(StandardCharsets.US_ASCII);
    Seeded.times(
        1000,
        input -> {
          byte[] bytes = input.bytes(200);
          parse(bytes);
          byte[] more = Arrays.copyOf(begun, begun.length + bytes.length);
          System.arraycopy(bytes, 0, more, begun.length, bytes.length);
          parse(more);
        });
  }

  private static void parse(byte[] bytes) {
    try {
      ResponseHead head = ResponseHead.read(new ByteArrayInputStream(bytes));
      assertThat(head.status()).isBetween(100, 599);
    } catch (SpaceException _) {
      // Refused, as most of it has to be.
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void heads_are_bounded() {
    String endless = "HTTP/1.1 200 OK\r\n" + "a: b\r\n".repeat(ResponseHead.HEADERS_MAX + 1);
    String longLine = "HTTP/1.1 200 OK\r\na: " + "b".repeat(ResponseHead.BYTES_MAX);
    for (String head : new String[] {endless, longLine, "HTTP/1.1 99 x\r\n\r\n", "SSH-2.0\r\n"}) {
      assertThatThrownBy(
              () ->
                  ResponseHead.read(
                      new ByteArrayInputStream(head.getBytes(StandardCharsets.US_ASCII))))
          .isInstanceOf(SpaceException.class);
    }
    assertThat(Optional.of(head("HTTP/1.0 404\r\nA:b\r\n\r\n")).map(ResponseHead::status))
        .contains(404);
  }

  private static ResponseHead head(String text) {
    try {
      return ResponseHead.read(new ByteArrayInputStream(text.getBytes(StandardCharsets.US_ASCII)));
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }
}
