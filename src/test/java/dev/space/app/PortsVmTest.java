package dev.space.app;

import static dev.space.app.RealPlane.PATIENCE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Ports of a real VM whose servers listen on 127.0.0.1 alone.
@Tag("vm")
@Tag("slow")
@Timeout(180)
@ExtendWith(RealPlane.Shared.class)
class PortsVmTest {

  private static final int ECHO = 7007;

  /// Echoes each connection until the client ends its direction, then says how much it was.
  private static final String SERVER =
      """
      import socket, threading
      s = socket.create_server(('127.0.0.1', %d))
      def serve(c):
          n = 0
          while True:
              b = c.recv(65536)
              if not b: break
              n += len(b)
              c.sendall(b)
          c.sendall(b'total %%d' %% n)
          c.close()
      while True:
          c, _ = s.accept()
          threading.Thread(target=serve, args=(c,)).start()
      """
          .formatted(ECHO);

  private final RealPlane plane;

  PortsVmTest(RealPlane plane) {
    this.plane = plane;
  }

  private RealPlane.Ticket start(String argv) {
    return plane.session("{\"argv\":" + argv + ",\"start\":true}");
  }

  private void end(RealPlane.Ticket ticket) {
    plane.call("DELETE", plane.sessions() + "/" + ticket.id(), "");
  }

  private int status(String url) {
    return plane.send(HttpRequest.newBuilder(URI.create(url))).statusCode();
  }

  @Test
  @DisplayName(
      "behaviour 41: a server on 127.0.0.1 is reached; closed is 502; public only if asked")
  void http() {
    var closed = plane.send("GET", plane.port(8000, "/"), "");
    assertThat(closed.statusCode()).isEqualTo(502);
    assertThat(closed.body()).contains("port_closed");
    plane.sh("mkdir -p www && echo served > www/f");
    var server =
        start(
            "[\"python3\",\"-m\",\"http.server\",\"8000\",\"-b\",\"127.0.0.1\",\"-d\",\"/home/user/www\"]");
    String file = plane.port(8000, "/f");
    await().atMost(PATIENCE).until(() -> plane.send("GET", file, "").statusCode() == 200);
    assertThat(plane.send("GET", file, "").body()).isEqualTo("served\n");
    assertThat(status(file)).isEqualTo(401);

    String box = "/v1/sandboxes/" + plane.sandbox();
    var changed = plane.call("PATCH", box, "{\"public_ports\":[8000]}");
    assertThat(changed.path("public_ports").toString()).isEqualTo("[8000]");
    assertThat(status(file)).isEqualTo(200);
    assertThat(status(plane.port(8001, "/"))).isEqualTo(401);
    plane.call("PATCH", box, "{\"public_ports\":[]}");
    assertThat(status(file)).isEqualTo(401);
    end(server);
  }

  @Test
  @DisplayName("port-forward carries raw TCP with half-closes, many connections at once")
  void forward(@TempDir Path dir) throws Exception {
    var server = start("[\"python3\",\"-c\"," + RealPlane.quoted(SERVER) + "]");
    Path said = dir.resolve("said");
    Process forward = plane.spaceProcess(said, "port-forward", plane.sandbox(), "0:" + ECHO);
    try {
      await().atMost(PATIENCE).until(() -> Files.readString(said).contains(" is port "));
      int local =
          Integer.parseInt(
              Files.readString(said).replaceAll("(?s).*127\\.0\\.0\\.1:([0-9]+) is.*", "$1"));
      await().atMost(PATIENCE).until(() -> exchange(local, "ready").equals("readytotal 5"));
      byte[] much = new byte[2 << 20];
      new java.util.Random(41).nextBytes(much);
      try (Socket held = new Socket(InetAddress.getLoopbackAddress(), local);
          Socket large = new Socket(InetAddress.getLoopbackAddress(), local)) {
        held.getOutputStream().write('h');
        assertThat(held.getInputStream().read()).isEqualTo('h');
        Thread sender =
            Thread.ofVirtual()
                .start(
                    () -> {
                      try {
                        large.getOutputStream().write(much);
                        large.shutdownOutput();
                      } catch (java.io.IOException e) {
                        throw new java.io.UncheckedIOException(e);
                      }
                    });
        InputStream in = large.getInputStream();
        assertThat(in.readNBytes(much.length)).isEqualTo(much);
        assertThat(new String(in.readAllBytes(), StandardCharsets.US_ASCII))
            .isEqualTo("total " + much.length);
        sender.join();
        held.getOutputStream().write('i');
        assertThat(held.getInputStream().read()).isEqualTo('i');
      }
    } finally {
      forward.destroy();
      end(server);
    }
  }

  private static String exchange(int port, String text) {
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
      socket.getOutputStream().write(text.getBytes(StandardCharsets.US_ASCII));
      socket.shutdownOutput();
      return new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
    } catch (java.io.IOException e) {
      return e.toString();
    }
  }

  @Test
  @DisplayName("behaviour 30: a large upload to a port streams")
  void upload() {
    String script =
        """
        import http.server
        class H(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                left = int(self.headers['Content-Length']); n = 0
                while left:
                    b = self.rfile.read(min(left, 65536)); left -= len(b); n += len(b)
                out = ('%s %d' % (self.headers['Host'], n)).encode()
                self.send_response(200); self.send_header('Content-Length', str(len(out)))
                self.end_headers(); self.wfile.write(out)
        http.server.HTTPServer(('127.0.0.1', 8002), H).serve_forever()
        """;
    var server = start("[\"python3\",\"-c\"," + RealPlane.quoted(script) + "]");
    int size = 32 << 20;
    await()
        .atMost(PATIENCE)
        .until(() -> plane.send("GET", plane.port(8002, "/"), "").statusCode() == 501);
    var answer =
        plane.send(
            plane
                .authorized(plane.port(8002, "/"))
                .POST(BodyPublishers.ofByteArray(new byte[size])));
    assertThat(answer.body()).isEqualTo(plane.dataUrl().replace("http://", "") + " " + size);
    end(server);
  }
}
