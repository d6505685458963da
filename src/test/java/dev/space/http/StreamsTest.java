package dev.space.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Server-sent events, web sockets, tunnels, and how they end.
@Timeout(30)
class StreamsTest {
  private static final ServerLimits QUICK =
      ServerLimits.DEFAULT
          .withKeepAlive(Duration.ofMillis(200))
          .withIdleTimeout(Duration.ofMillis(500));

  private static TestServer serve(Handler handler) {
    return new TestServer(handler, QUICK, RequestObserver.NONE);
  }

  private static final String GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

  @Test
  void eventsCarryIdTypeAndEveryLineOfData() throws Exception {
    try (var server =
            serve(
                e -> {
                  EventStream events = e.events();
                  events.append("1", "stdout", "a\nb".getBytes(StandardCharsets.UTF_8));
                  events.append("2", "", "ä".getBytes(StandardCharsets.UTF_8));
                  events.flush();
                });
        var client = server.client()) {
      String answer = client.send(GET).readUntil("0\r\n\r\n");
      assertThat(answer)
          .contains("Content-Type: text/event-stream")
          .contains("Cache-Control: no-store")
          .contains("X-Accel-Buffering: no")
          .contains("id: 1\nevent: stdout\ndata: a\ndata: b\n\nid: 2\ndata: ");
    }
  }

  /// Behaviour 8.
  @Test
  void anIdleStreamIsKeptAliveBeyondTheIdleTimeout() throws Exception {
    var finish = new CountDownLatch(1);
    try (var server =
            serve(
                e -> {
                  EventStream events = e.events();
                  finish.await();
                  events.send("9", "exit", "{}");
                });
        var client = server.client()) {
      client.send(GET);
      for (int i = 0; i < 6; i++) {
        client.readUntil(": keep-alive\n\n");
      }
      finish.countDown();
      assertThat(client.readUntil("0\r\n\r\n")).contains("id: 9\nevent: exit\ndata: {}\n\n");
    }
  }

  @Test
  void aHandlerLearnsThatItsClientIsGone() throws Exception {
    var ended = new CountDownLatch(1);
    try (var server =
        serve(
            e -> {
              EventStream events = e.events();
              try {
                new CountDownLatch(1).await();
              } catch (InterruptedException interrupted) {
                if (events.isGone()) {
                  ended.countDown();
                }
              }
            })) {
      try (var client = server.client()) {
        client.send(GET).readUntil("\r\n\r\n");
      }
      assertThat(ended.await(10, TimeUnit.SECONDS)).isTrue();
      await().until(() -> server.server().open() == 0);
    }
  }

  /// Behaviour 4.
  @Test
  void aFailureMidStreamIsAnErrorEvent() throws Exception {
    try (var server =
            serve(
                e -> {
                  e.events().send("1", "stdout", "x");
                  throw Problem.of(ErrorCode.SANDBOX_DIED, "The sandbox died").toException();
                });
        var client = server.client()) {
      assertThat(client.send(GET).readUntil("0\r\n\r\n"))
          .contains("event: error\ndata: {\"type\":\"urn:space:error:sandbox_died\"");
    }
  }

  /// Behaviour 47.
  @Test
  void aStopTellsStreamsAndRefusesNewWork() throws Exception {
    var interrupted = new CountDownLatch(1);
    var release = new CountDownLatch(1);
    var busy = new CountDownLatch(1);
    var server =
        serve(
            e -> {
              if (e.rawPath().equals("/busy")) {
                busy.countDown();
                release.await();
                e.send("text/plain", "done".getBytes(StandardCharsets.UTF_8));
                return;
              }
              e.events();
              try {
                new CountDownLatch(1).await();
              } catch (InterruptedException _) {
                interrupted.countDown();
              }
            });
    try (var stream = server.client();
        var working = server.client();
        var late = server.client()) {
      stream.send(GET).readUntil("\r\n\r\n");
      working.send("GET /busy HTTP/1.1\r\nHost: x\r\n\r\n");
      busy.await();
      Thread stop = Thread.startVirtualThread(() -> server.server().stop(Duration.ofSeconds(10)));
      assertThat(stream.readUntil("0\r\n\r\n"))
          .contains("event: error\n")
          .contains("\"code\":\"shutting_down\"");
      assertThat(late.send(GET).readAnswer())
          .startsWith("HTTP/1.1 503")
          .contains("shutting_down")
          .contains("Connection: close");
      release.countDown();
      assertThat(working.readAnswer()).endsWith("done");
      stop.join(Duration.ofSeconds(10));
      assertThat(stop.isAlive()).isFalse();
      assertThat(interrupted.await(5, TimeUnit.SECONDS)).isTrue();
    }
  }

  /// Behaviour 7.
  @Test
  void aClientThatDoesNotReadBlocksTheWriter() throws Exception {
    var written = new java.util.concurrent.atomic.AtomicLong();
    try (var server =
            serve(
                e -> {
                  e.idleForever();
                  OutputStream out = e.stream("application/octet-stream");
                  byte[] block = new byte[64 * 1024];
                  while (written.get() < 200L * 1024 * 1024) {
                    out.write(block);
                    written.addAndGet(block.length);
                  }
                });
        var client = server.client()) {
      client.send(GET).readUntil("\r\n\r\n");
      var last = new AtomicReference<>(-1L);
      await()
          .pollInterval(Duration.ofMillis(900))
          .until(() -> last.getAndSet(written.get()) == written.get());
      assertThat(written.get()).isPositive().isLessThan(32L * 1024 * 1024);
      long read = 0;
      byte[] buffer = new byte[64 * 1024];
      for (int n = 0; n >= 0 && read < 200L * 1024 * 1024; n = client.in().read(buffer)) {
        read += n;
      }
      assertThat(read).isGreaterThanOrEqualTo(200L * 1024 * 1024);
    }
  }

  @Test
  void webSocketsCarryTextAndBytesBothWays() throws Exception {
    var closed = new CountDownLatch(1);
    try (var server =
            serve(
                e ->
                    e.webSocket(
                        new WebSocketOptions(java.util.Optional.of("space"), 1000),
                        socket -> {
                          while (socket.receive().orElse(null) instanceof WebSocket.Message m) {
                            switch (m) {
                              case WebSocket.Message.Text(String text) -> socket.sendText(text);
                              case WebSocket.Message.Binary(byte[] b) -> socket.sendBinary(b);
                            }
                          }
                          closed.countDown();
                        }));
        var client = HttpClient.newHttpClient()) {
      BlockingQueue<Object> received = new LinkedBlockingQueue<>();
      java.net.http.WebSocket socket =
          client
              .newWebSocketBuilder()
              .subprotocols("space")
              .buildAsync(
                  URI.create(server.url("/").replace("http:", "ws:")), new Collector(received))
              .get(10, TimeUnit.SECONDS);
      assertThat(socket.getSubprotocol()).isEqualTo("space");
      for (int i = 0; i < 50; i++) {
        socket.sendText("text " + i, true).get(10, TimeUnit.SECONDS);
        assertThat(received.poll(10, TimeUnit.SECONDS)).isEqualTo("text " + i);
        socket.sendBinary(ByteBuffer.wrap(new byte[] {0, (byte) i}), true).get();
        assertThat(received.poll(10, TimeUnit.SECONDS)).isEqualTo(List.of((byte) 0, (byte) i));
      }
      // Longer than every timeout: pings keep it open.
      assertThat(received.poll(1500, TimeUnit.MILLISECONDS)).isNull();
      socket.sendText("still here", true).get();
      assertThat(received.poll(10, TimeUnit.SECONDS)).isEqualTo("still here");
      socket.sendText("x".repeat(2000), true);
      assertThat(received.poll(10, TimeUnit.SECONDS)).isEqualTo(1009);
      assertThat(closed.await(10, TimeUnit.SECONDS)).isTrue();
    }
  }

  private record Collector(BlockingQueue<Object> received)
      implements java.net.http.WebSocket.Listener {
    @Override
    public CompletionStage<?> onText(
        java.net.http.WebSocket socket, CharSequence data, boolean last) {
      received.add(data.toString());
      socket.request(1);
      return java.util.concurrent.CompletableFuture.completedStage(null);
    }

    @Override
    public CompletionStage<?> onBinary(
        java.net.http.WebSocket socket, ByteBuffer data, boolean last) {
      var bytes = new java.util.ArrayList<Byte>();
      while (data.hasRemaining()) {
        bytes.add(data.get());
      }
      received.add(bytes);
      socket.request(1);
      return java.util.concurrent.CompletableFuture.completedStage(null);
    }

    @Override
    public CompletionStage<?> onClose(java.net.http.WebSocket socket, int code, String reason) {
      received.add(code);
      return java.util.concurrent.CompletableFuture.completedStage(null);
    }
  }

  @Test
  void aPlainRequestToAWebSocketIs400() throws Exception {
    try (var server = serve(e -> e.webSocket(WebSocketOptions.DEFAULT, _ -> {}));
        var client = server.client()) {
      assertThat(client.send(GET).readAnswer()).startsWith("HTTP/1.1 400").contains("handshake");
      client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
      assertThat(client.readAnswer()).startsWith("HTTP/1.1 400");
    }
  }

  @Test
  void tunnelsCarryRawBytesFromTheFirstOn() throws Exception {
    try (var server =
            serve(
                e ->
                    e.tunnel(
                        List.of(Map.entry("Connection", "Upgrade"), Map.entry("Upgrade", "echo")),
                        tunnel -> {
                          InputStream in = tunnel.in();
                          byte[] buffer = new byte[100_000];
                          for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                            tunnel.out().write(buffer, 0, n);
                          }
                          tunnel.out().write('!');
                        }));
        var client = server.client()) {
      client.send(
          "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly bytes");
      String head = client.readUntil("early bytes");
      assertThat(head).startsWith("HTTP/1.1 101").contains("Upgrade: echo");
      byte[] big = new byte[3_000_000];
      for (int i = 0; i < big.length; i++) {
        big[i] = (byte) (i * 31);
      }
      Thread.startVirtualThread(
          () -> {
            try {
              client.send(big);
              client.socket().shutdownOutput();
            } catch (java.io.IOException e) {
              throw new java.io.UncheckedIOException(e);
            }
          });
      byte[] back = client.in().readAllBytes();
      assertThat(back).hasSize(big.length + 1).startsWith(big).endsWith('!');
    }
  }

  @Test
  void aTunnelWhoseClientLeftBeforeTheAnswerRunsToItsEnd() throws Exception {
    var asked = new CountDownLatch(1);
    var left = new CountDownLatch(1);
    var ended = new CountDownLatch(1);
    try (var server =
        serve(
            e -> {
              asked.countDown();
              left.await();
              e.tunnel(
                  List.of(Map.entry("Connection", "Upgrade"), Map.entry("Upgrade", "echo")),
                  tunnel -> {
                    try {
                      tunnel.in().readAllBytes();
                    } finally {
                      ended.countDown();
                    }
                  });
            })) {
      try (var client = server.client()) {
        client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
        assertThat(asked.await(10, TimeUnit.SECONDS)).isTrue();
        client.socket().setSoLinger(true, 0); // the close is a reset, which fails the 101
      }
      left.countDown();
      assertThat(ended.await(10, TimeUnit.SECONDS)).isTrue();
      await().until(() -> server.server().open() == 0);
    }
  }

  @Test
  void aStreamThatFailsTakesNobodysSignsOfLife() throws Exception {
    var ticks = new CountDownLatch(3);
    try (var streams = new LiveStreams(Duration.ofMillis(20))) {
      streams.add(
          new Ticked(
              () -> {
                throw new IllegalStateException("a defect");
              }));
      streams.add(new Ticked(ticks::countDown));
      assertThat(ticks.await(10, TimeUnit.SECONDS)).isTrue();
    }
  }

  private record Ticked(Runnable action) implements LiveStreams.LiveStream {
    @Override
    public void tick(long nanoTime, Duration keepAlive) {
      action.run();
    }

    @Override
    public void shutDown() {}
  }

  @Test
  void aThrowAfterTheHeadersCutsTheConnection() throws Exception {
    try (var server =
            serve(
                e -> {
                  OutputStream out = e.stream("text/plain");
                  out.write('x');
                  throw Problem.of(ErrorCode.GUEST_UNREACHABLE, "lost").toException();
                });
        var client = server.client()) {
      assertThat(client.send(GET).readAll()).doesNotContain("0\r\n\r\n");
    }
  }

  @Test
  void aPortInUseIsAClearError() {
    try (var server = serve(_ -> {})) {
      SpaceException refused =
          org.assertj.core.api.Assertions.catchThrowableOfType(
              SpaceException.class,
              () ->
                  dev.space.http.jetty.JettyServer.start(
                      List.of(new HttpListener("api", server.address(), _ -> {})),
                      ServerLimits.DEFAULT,
                      new RequestIds(new java.security.SecureRandom()),
                      RequestObserver.NONE));
      assertThat(refused.code()).isEqualTo(ErrorCode.PREREQUISITE_MISSING);
      assertThat(refused.problem().detail()).contains("Cannot listen on 127.0.0.1:");
      assertThat(refused.problem().remedy().orElse("")).contains("ss -ltnp");
    }
  }

  @Test
  void anIdleHandlerWithoutAStreamIsNotCut() throws Exception {
    try (var server =
            serve(
                e -> {
                  new CountDownLatch(1).await(1500, TimeUnit.MILLISECONDS);
                  e.send("text/plain", "late".getBytes(StandardCharsets.UTF_8));
                });
        var client = server.client()) {
      assertThat(client.send(GET).readAnswer()).endsWith("late");
    }
  }
}
