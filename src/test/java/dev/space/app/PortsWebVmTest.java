package dev.space.app;

import static dev.space.app.RealPlane.PATIENCE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.space.http.Json;
import dev.space.wire.EventReader;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.WebSocket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/// What browsers do with a port of a real VM: web sockets, server-sent events, host names, cookies.
@Tag("vm")
@Tag("slow")
@Timeout(180)
@ExtendWith(RealPlane.Shared.class)
class PortsWebVmTest {

  private static final int PORT = 8003;

  /// Tells what it was asked, or sends three events a second apart, or echoes over a web socket.
  private static final String SERVER =
      """
      import base64, hashlib, http.server, struct, time
      class H(http.server.BaseHTTPRequestHandler):
          protocol_version = 'HTTP/1.1'
          def log_message(self, *a): pass
          def do_GET(self):
              if self.path.startswith('/ws'): return self.ws()
              if self.path.startswith('/events'): return self.events()
              out = '\\n'.join([self.path] + ['%s: %s' % kv for kv in self.headers.items()]).encode()
              self.send_response(200)
              self.send_header('Content-Length', str(len(out)))
              self.end_headers()
              self.wfile.write(out)
          def events(self):
              self.send_response(200)
              self.send_header('Content-Type', 'text/event-stream')
              self.send_header('Connection', 'close')
              self.end_headers()
              for i in range(3):
                  self.wfile.write(b'data: %d\\n\\n' % i)
                  self.wfile.flush()
                  time.sleep(1)
          def ws(self):
              key = self.headers['Sec-WebSocket-Key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
              self.send_response(101)
              self.send_header('Upgrade', 'websocket')
              self.send_header('Connection', 'Upgrade')
              self.send_header('Sec-WebSocket-Accept',
                  base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
              self.end_headers()
              self.frame(('host ' + self.headers['Host']).encode())
              while True:
                  head = self.rfile.read(2)
                  if len(head) < 2 or head[0] & 15 == 8: break
                  n = head[1] & 127
                  if n == 126: n = struct.unpack('>H', self.rfile.read(2))[0]
                  mask = self.rfile.read(4)
                  data = self.rfile.read(n)
                  self.frame(b'echo ' + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))
              self.close_connection = True
          def frame(self, data):
              n = len(data)
              size = bytes([n]) if n < 126 else bytes([126]) + struct.pack('>H', n)
              self.wfile.write(bytes([0x81]) + size + data)
              self.wfile.flush()
      http.server.ThreadingHTTPServer(('127.0.0.1', PORT), H).serve_forever()
      """
          .replace("PORT", String.valueOf(PORT));

  private final RealPlane plane;
  private String server = "";

  PortsWebVmTest(RealPlane plane) {
    this.plane = plane;
  }

  @BeforeEach
  void start() {
    server =
        plane
            .session(
                "{\"argv\":[\"python3\",\"-c\"," + RealPlane.quoted(SERVER) + "],\"start\":true}")
            .id();
    await()
        .atMost(PATIENCE)
        .until(() -> plane.send("GET", plane.port(PORT, "/"), "").statusCode() == 200);
  }

  @AfterEach
  void stop() {
    plane.call("DELETE", plane.sessions() + "/" + server, "");
  }

  private String token(int port) {
    var made =
        plane.send(
            "POST",
            plane.dataUrl() + "/v1/sandboxes/" + plane.sandbox() + "/port-tokens",
            "{\"port\":" + port + "}");
    assertThat(made.statusCode()).as(made.body()).isEqualTo(201);
    return Json.mapper().readTree(made.body()).path("token").asString();
  }

  private static final class Texts implements WebSocket.Listener {
    final CopyOnWriteArrayList<String> all = new CopyOnWriteArrayList<>();

    @Override
    public CompletionStage<?> onText(WebSocket socket, CharSequence data, boolean last) {
      all.add(data.toString());
      socket.request(1);
      return CompletableFuture.completedStage(null);
    }
  }

  @Test
  @DisplayName("behaviour 41: a web socket passes, let in by a token in its subprotocol alone")
  void webSocket() {
    URI url = URI.create(plane.port(PORT, "/ws").replace("http:", "ws:"));
    var texts = new Texts();
    WebSocket socket =
        plane
            .http()
            .newWebSocketBuilder()
            .subprotocols("space.token." + token(PORT))
            .buildAsync(url, texts)
            .join();
    socket.sendText("hello", true).join();
    String large = "x".repeat(5000);
    socket.sendText(large, true).join();
    await().atMost(PATIENCE).until(() -> texts.all.size() >= 3);
    assertThat(texts.all)
        .containsExactly(
            "host " + URI.create(plane.dataUrl()).getAuthority(), "echo hello", "echo " + large);
    socket.abort();

    for (String[] protocols :
        new String[][] {{}, {"space.token." + token(PORT + 1)}, {"space-token.nonsense"}}) {
      var builder = plane.http().newWebSocketBuilder();
      if (protocols.length > 0) {
        builder.subprotocols(protocols[0]);
      }
      assertThat(builder.buildAsync(url, new Texts()).handle((_, e) -> e != null).join())
          .as("a web socket without the right token is refused")
          .isTrue();
    }
  }

  @Test
  @DisplayName("behaviour 41: events pass one by one, not in one piece at the end")
  void events() throws Exception {
    HttpResponse<InputStream> answer =
        plane
            .http()
            .send(
                plane.authorized(plane.port(PORT, "/events")).build(),
                BodyHandlers.ofInputStream());
    try (InputStream body = answer.body()) {
      var events = new EventReader(body);
      assertThat(events.next().orElseThrow().data()).isEqualTo("0");
      long first = System.nanoTime();
      assertThat(events.next().orElseThrow().data()).isEqualTo("1");
      assertThat(events.next().orElseThrow().data()).isEqualTo("2");
      assertThat(Duration.ofNanos(System.nanoTime() - first)).isGreaterThan(Duration.ofSeconds(1));
      assertThat(events.next()).isEmpty();
    }
  }

  @Test
  @DisplayName("behaviours 40, 41: a token opens its port by header, and by query as a cookie")
  void tokens() {
    String token = token(PORT);
    String url = plane.port(PORT, "/a?x=1");
    var byHeader =
        plane.send(HttpRequest.newBuilder(URI.create(url)).header("X-Space-Port-Token", token));
    assertThat(byHeader.statusCode()).isEqualTo(200);
    assertThat(byHeader.body()).startsWith("/a?x=1\n").doesNotContain(token);
    var other =
        plane.send(
            HttpRequest.newBuilder(URI.create(plane.port(PORT + 1, "/")))
                .header("X-Space-Port-Token", token));
    assertThat(other.statusCode()).isEqualTo(403);

    var first = plane.send(HttpRequest.newBuilder(URI.create(url + "&space_port_token=" + token)));
    assertThat(first.statusCode()).isEqualTo(303);
    assertThat(first.headers().firstValue("Location").orElseThrow()).endsWith("/a?x=1");
    String cookie = first.headers().firstValue("Set-Cookie").orElseThrow().split(";")[0];
    var second =
        plane.send(HttpRequest.newBuilder(URI.create(url)).header("Cookie", "own=1; " + cookie));
    assertThat(second.statusCode()).isEqualTo(200);
    assertThat(second.body()).contains("Cookie: own=1").doesNotContain(token);
  }

  @Test
  @DisplayName("behaviour 41: host names lead to ports, by the same rules, plain and upgraded")
  void hostNames() {
    String name = PORT + "-" + plane.sandbox() + ".ports.test";
    assertThat(ask(name, "/b", "")).startsWith("HTTP/1.1 401");
    String answer = ask(name, "/b?y=2", "X-API-Key: " + plane.key() + "\r\n");
    assertThat(answer)
        .startsWith("HTTP/1.1 200")
        .contains("/b?y=2\n")
        .contains("Host: " + name)
        .doesNotContain(plane.key());
    assertThat(ask(name, "/b", "X-Space-Port-Token: " + token(PORT) + "\r\n"))
        .startsWith("HTTP/1.1 200");
    assertThat(ask(name.replaceFirst("-.", "-0"), "/b", "X-API-Key: " + plane.key() + "\r\n"))
        .startsWith("HTTP/1.1 404");

    String upgrade =
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            + "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n";
    assertThat(ask(name, "/ws", upgrade)).startsWith("HTTP/1.1 401");
    assertThat(ask(name, "/ws", upgrade + "X-API-Key: " + plane.key() + "\r\n"))
        .startsWith("HTTP/1.1 101")
        .endsWith("host " + name);
  }

  @Test
  @DisplayName("behaviour 41: a public port is so by its host name too, and its neighbours are not")
  void publicPorts() {
    String box = "/v1/sandboxes/" + plane.sandbox();
    String name = PORT + "-" + plane.sandbox() + ".ports.test";
    String upgrade =
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            + "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n";
    plane.call("PATCH", box, "{\"public_ports\":[" + PORT + "]}");
    try {
      assertThat(ask(name, "/c", "")).startsWith("HTTP/1.1 200").contains("/c\n");
      assertThat(ask(name, "/ws", upgrade)).startsWith("HTTP/1.1 101");
      String neighbour = (PORT + 1) + name.substring(name.indexOf('-'));
      assertThat(ask(neighbour, "/c", "")).startsWith("HTTP/1.1 401");
    } finally {
      plane.call("PATCH", box, "{\"public_ports\":[]}");
    }
    assertThat(ask(name, "/c", "")).startsWith("HTTP/1.1 401");
    assertThat(ask(name, "/ws", upgrade)).startsWith("HTTP/1.1 401");
  }

  /// Asks with a name of our own in Host; gives the whole answer, with the first text of a web
  /// socket behind its head.
  private String ask(String host, String path, String headers) {
    URI plane = URI.create(this.plane.dataUrl());
    try (Socket socket = new Socket(plane.getHost(), plane.getPort())) {
      socket.setSoTimeout((int) PATIENCE.toMillis());
      String connection = headers.contains("Upgrade:") ? "Upgrade" : "close";
      String request =
          "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: %s\r\n%s\r\n"
              .formatted(path, host, connection, headers);
      socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
      var in = new DataInputStream(socket.getInputStream());
      var answer = new StringBuilder();
      while (answer.indexOf("\r\n\r\n") < 0) {
        answer.append((char) in.readUnsignedByte());
      }
      if (answer.toString().startsWith("HTTP/1.1 101")) {
        assertThat(in.readUnsignedByte()).isEqualTo(0x81);
        byte[] text = in.readNBytes(in.readUnsignedByte());
        return answer + new String(text, StandardCharsets.US_ASCII);
      }
      return answer + new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
