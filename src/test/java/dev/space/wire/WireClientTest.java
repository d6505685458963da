package dev.space.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.wire.EventReader.Event;
import dev.space.wire.WireException.Fault;
import dev.space.wire.WireRequest.Body;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(20)
class WireClientTest {

  private static final int TEXT_MAX = 1 << 20;

  @Test
  void sendsARequestAndReadsAFixedBodyOverAUnixSocket(@TempDir Path dir) throws Exception {
    CompletableFuture<String> head = new CompletableFuture<>();
    try (ScriptedServer server =
            ScriptedServer.unix(
                dir.resolve("s.sock"),
                peer -> {
                  head.complete(peer.head());
                  peer.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello, more");
                });
        WireResponse answer =
            server.client().send(WireRequest.of("GET", "/v1/x?y=1").header("X-Key", "k"))) {
      assertThat(answer.status()).isEqualTo(200);
      assertThat(answer.text(TEXT_MAX)).isEqualTo("hello");
      assertThat(answer.headers().first("x-a")).contains("b");
    }
    assertThat(head.get())
        .isEqualTo(
            "GET /v1/x?y=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Key: k\r\n\r\n");
  }

  @Test
  void readsChunksHoweverTheyAreCut() throws Exception {
    String answer =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            + "3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n";
    try (ScriptedServer server =
        ScriptedServer.tcp(
            peer -> {
              peer.head();
              for (String piece : answer.split("(?<=.)")) {
                peer.write(piece);
              }
            })) {
      try (WireResponse response = server.client().send(WireRequest.of("GET", "/"))) {
        assertThat(response.text(TEXT_MAX)).isEqualTo("abc0123456789");
      }
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nContent-Le",
        ""
      })
  void anAnswerThatEndsEarlyIsAnErrorAndNeverAnEnd(String answer) throws Exception {
    try (ScriptedServer server =
        ScriptedServer.tcp(
            peer -> {
              peer.head();
              peer.write(answer);
            })) {
      assertFault(server, WireRequest.of("GET", "/"), Fault.CUT_OFF);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n"
      })
  void whatIsNotHttpIsAnError(String answer) throws Exception {
    try (ScriptedServer server =
        ScriptedServer.tcp(
            peer -> {
              peer.head();
              peer.write(answer);
              peer.awaitEnd();
            })) {
      assertFault(server, WireRequest.of("GET", "/"), Fault.MALFORMED);
    }
  }

  @Test
  void headAndHeaderLinesAreBounded() throws Exception {
    try (ScriptedServer server =
        ScriptedServer.tcp(
            peer -> {
              peer.head();
              peer.write("HTTP/1.1 200 OK\r\nX: " + "a".repeat(1 << 20));
              peer.awaitEnd();
            })) {
      assertFault(server, WireRequest.of("GET", "/"), Fault.MALFORMED);
    }
  }

  @Test
  void deadlineEndsAnExchangeThatHangs() throws Exception {
    try (ScriptedServer server =
        ScriptedServer.tcp(
            peer -> {
              peer.head();
              peer.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
              peer.awaitEnd();
            })) {
      long start = System.nanoTime();
      assertFault(
          server, WireRequest.of("GET", "/").within(Duration.ofMillis(200)), Fault.TIMED_OUT);
      assertThat(System.nanoTime() - start).isLessThan(TimeUnit.SECONDS.toNanos(5));
    }
  }

  @Test
  void silenceIsCountedFromTheLastByte() throws Exception {
    try (ScriptedServer server =
        ScriptedServer.tcp(
            peer -> {
              peer.head();
              peer.write("HTTP/1.1 200 OK\r\n\r\n");
              CompletableFuture<Void> pause = new CompletableFuture<>();
              for (int i = 0; i < 8; i++) {
                pause.copy().completeOnTimeout(null, 100, TimeUnit.MILLISECONDS).get();
                peer.write(": still here\n");
              }
              peer.awaitEnd();
            })) {
      long start = System.nanoTime();
      assertFault(
          server, WireRequest.of("GET", "/").silentFor(Duration.ofMillis(400)), Fault.TIMED_OUT);
      assertThat(System.nanoTime() - start).isGreaterThan(TimeUnit.MILLISECONDS.toNanos(1100));
    }
  }

  @Test
  void nobodyListening(@TempDir Path dir) {
    WireClient client = new WireClient(new Endpoint.Unix(dir.resolve("none.sock")));
    assertThatThrownBy(() -> client.send(WireRequest.of("GET", "/")))
        .isInstanceOfSatisfying(
            WireException.class, e -> assertThat(e.fault()).isEqualTo(Fault.NOT_CONNECTED));
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void streamsABodyOfAMebibyteExactly(boolean lengthKnown) throws Exception {
    byte[] bytes = new byte[1 << 20];
    new Random(7).nextBytes(bytes);
    CompletableFuture<byte[]> received = new CompletableFuture<>();
    try (ScriptedServer server =
        ScriptedServer.tcp(
            peer -> {
              String head = peer.head();
              if (lengthKnown) {
                assertThat(head).contains("Content-Length: 1048576\r\n");
                received.complete(peer.read(bytes.length));
              } else {
                assertThat(head).contains("Transfer-Encoding: chunked\r\n");
                received.complete(new BodyOfChunks(peer).all());
              }
              peer.write("HTTP/1.1 204 No Content\r\n\r\n");
            })) {
      Body body =
          new Body.Stream(
              new ByteArrayInputStream(bytes),
              lengthKnown ? OptionalLong.of(bytes.length) : OptionalLong.empty());
      try (WireResponse answer = server.client().send(WireRequest.of("PUT", "/file").body(body))) {
        assertThat(answer.status()).isEqualTo(204);
        assertThat(answer.bytes(1)).isEmpty();
      }
    }
    assertThat(received.get()).isEqualTo(bytes);
  }

  @Test
  void aRefusalBeforeTheBodyWasReadIsTheAnswer() throws Exception {
    try (ScriptedServer server =
        ScriptedServer.tcp(
            peer -> {
              peer.head();
              peer.read(1000);
              peer.write("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig");
              peer.read(64 << 20);
            })) {
      try (WireResponse answer =
          server
              .client()
              .send(WireRequest.of("PUT", "/").body(new Body.Bytes(new byte[8 << 20])))) {
        assertThat(answer.status()).isEqualTo(413);
      }
    }
  }

  @Test
  void interimAnswersArePassedOver() throws Exception {
    try (ScriptedServer server =
        ScriptedServer.tcp(
            peer -> {
              peer.head();
              peer.write(
                  "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
            })) {
      try (WireResponse answer = server.client().send(WireRequest.of("POST", "/"))) {
        assertThat(answer.status()).isEqualTo(201);
      }
    }
  }

  @Test
  void readsServerSentEvents() throws Exception {
    try (ScriptedServer server =
        ScriptedServer.tcp(
            peer -> {
              peer.head();
              peer.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
              peer.write(": keep-alive\n\nid: 7\nevent: stdout\ndata: {\"a\":1}\n\n");
              peer.write("data: one\r\ndata:two\r\rdata\n\nid: 9\nevent: cut\ndata: never ended\n");
            })) {
      try (WireResponse answer = server.client().send(WireRequest.of("GET", "/"))) {
        EventReader events = answer.events();
        assertThat(events.next()).contains(new Event(Optional.of("7"), "stdout", "{\"a\":1}"));
        assertThat(events.next()).contains(new Event(Optional.empty(), "message", "one\ntwo"));
        assertThat(events.next()).contains(new Event(Optional.empty(), "message", ""));
        assertThat(events.next()).isEmpty();
      }
    }
  }

  @Test
  void headersAndTargetsCanNotBreakTheRequestApart() {
    assertThatThrownBy(() -> Headers.NONE.with("X", "a\r\nY: b"))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> Headers.NONE.with("X: y", "a"))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> WireRequest.of("GET", "/a b"))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(WireClient.encode("a b/ü?&\n~")).isEqualTo("a%20b%2F%C3%BC%3F%26%0A~");
  }

  @Test
  void readsUrls() {
    assertThat(Endpoint.ofUrl("http://127.0.0.1:8700/v1"))
        .isEqualTo(new Endpoint.Tcp("127.0.0.1", 8700));
    assertThat(Endpoint.ofUrl("http://[::1]:8700")).isEqualTo(new Endpoint.Tcp("::1", 8700));
    assertThat(Endpoint.ofUrl("http://[::1]:8700").authority()).isEqualTo("[::1]:8700");
    assertThat(Endpoint.ofUrl("http://example").port()).isEqualTo(80);
    assertThatThrownBy(() -> Endpoint.ofUrl("127.0.0.1:8700"))
        .isInstanceOf(IllegalArgumentException.class);
  }

  private static void assertFault(ScriptedServer server, WireRequest request, Fault fault) {
    assertThatThrownBy(
            () -> {
              try (WireResponse answer = server.client().send(request)) {
                answer.bytes(TEXT_MAX);
              }
            })
        .isInstanceOfSatisfying(
            WireException.class, e -> assertThat(e.fault()).as(e.getMessage()).isEqualTo(fault));
  }

  /// Takes a chunked request body apart.
  private record BodyOfChunks(ScriptedServer.Peer peer) {
    byte[] all() throws IOException {
      java.io.ByteArrayOutputStream all = new java.io.ByteArrayOutputStream();
      while (true) {
        StringBuilder size = new StringBuilder();
        while (size.indexOf("\r\n") < 0) {
          size.append((char) peer.read(1)[0]);
        }
        int length = Integer.parseInt(size.toString().strip(), 16);
        all.writeBytes(peer.read(length));
        peer.read(2);
        if (length == 0) {
          return all.toByteArray();
        }
      }
    }
  }
}
