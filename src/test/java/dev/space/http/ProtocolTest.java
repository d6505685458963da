package dev.space.http;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.OutputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/// Corner cases of HTTP, as raw bytes. Behaviour 38: a reason and a 4xx, never a 500, never a hang.
class ProtocolTest {
  private static TestServer server;

  @BeforeAll
  static void start() {
    Router router =
        Router.builder()
            .get("/hello", e -> e.send("text/plain", "hello".getBytes(StandardCharsets.UTF_8)))
            .get("/empty", e -> e.status(204).sendEmpty())
            .get("/items/{id}", e -> Json.send(e, 200, Map.of("id", e.pathVariable("id"))))
            .get("/items/special", e -> Json.send(e, 200, Map.of("id", "the literal")))
            .any("/tail/{rest...}", e -> Json.send(e, 200, Map.of("rest", e.pathVariable("rest"))))
            .post("/echo", e -> e.send("application/octet-stream", e.bodyBytes(1000)))
            .get("/query", e -> Json.send(e, 200, Map.of("x", e.query().allow("x").required("x"))))
            .get("/defect", _ -> Map.of().get(null))
            .get("/half", ProtocolTest::half)
            .get(
                "/slow-stream",
                e -> {
                  try (OutputStream out = e.stream("text/plain")) {
                    out.write('a');
                    out.write('b');
                  }
                })
            .get("/host", e -> Json.send(e, 200, Map.of("host", e.host().orElse(""))))
            .build();
    server =
        new TestServer(
            router,
            ServerLimits.DEFAULT.withIdleTimeout(Duration.ofMillis(700)),
            RequestObserver.NONE);
  }

  private static void half(Exchange exchange) throws Exception {
    OutputStream out = exchange.stream("text/plain");
    out.write("part".getBytes(StandardCharsets.UTF_8));
    exchange.abort();
  }

  @AfterAll
  static void stop() {
    server.close();
  }

  private static String ask(String request) throws Exception {
    try (RawClient client = server.client()) {
      return client.send(request).readAnswer();
    }
  }

  private static String get(String target) throws Exception {
    return ask("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n");
  }

  @Test
  void answersHttp10AndCloses() throws Exception {
    try (RawClient client = server.client()) {
      String answer = client.send("GET /hello HTTP/1.0\r\n\r\n").readAll();
      assertThat(answer).startsWith("HTTP/1.1 200").endsWith("\r\n\r\nhello");
    }
  }

  @Test
  void endsAStreamToHttp10ByClosing() throws Exception {
    try (RawClient client = server.client()) {
      String answer = client.send("GET /slow-stream HTTP/1.0\r\n\r\n").readAll();
      assertThat(answer).endsWith("\r\n\r\nab").doesNotContain("chunked");
    }
  }

  @Test
  void headHasTheHeadersOfGetAndNoBody() throws Exception {
    try (RawClient client = server.client()) {
      client.send("HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\n");
      assertThat(client.readUntil("\r\n\r\n")).contains("200").contains("Content-Length: 5");
      client.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
      assertThat(client.readAnswer()).startsWith("HTTP/1.1 200").endsWith("hello");
    }
  }

  @Test
  void literalsWinOverVariables() throws Exception {
    assertThat(get("/items/special")).contains("the literal");
    assertThat(get("/items/a%2Fb%20c")).endsWith("{\"id\":\"a/b c\"}");
  }

  @Test
  void tailsAreHandedOnAsTheyAre() throws Exception {
    assertThat(get("/tail/a//b%2Fc/../d;x=1/")).endsWith("{\"rest\":\"a//b%2Fc/../d;x=1/\"}");
    assertThat(get("/tail/")).endsWith("{\"rest\":\"\"}");
  }

  @Test
  void unknownPathsAndTrailingSlashesAre404() throws Exception {
    assertThat(get("/nothing")).startsWith("HTTP/1.1 404").contains("\"code\":\"not_found\"");
    assertThat(get("/hello/")).startsWith("HTTP/1.1 404").contains("trailing slash");
  }

  @Test
  void wrongMethodsAre405WithAllow() throws Exception {
    String answer = ask("DELETE /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    assertThat(answer).startsWith("HTTP/1.1 405").contains("Allow: GET, HEAD, OPTIONS");
    assertThat(ask("BREW /hello HTTP/1.1\r\nHost: x\r\n\r\n")).startsWith("HTTP/1.1 405");
    assertThat(ask("OPTIONS /echo HTTP/1.1\r\nHost: x\r\n\r\n"))
        .startsWith("HTTP/1.1 204")
        .contains("Allow: OPTIONS, POST");
  }

  @Test
  void problemsSayWhatWhyAndTheRequestId() throws Exception {
    String answer = ask("GET /query?y=1 HTTP/1.1\r\nHost: x\r\nX-Request-Id: my-id.7\r\n\r\n");
    assertThat(answer)
        .startsWith("HTTP/1.1 400")
        .contains("Content-Type: application/problem+json")
        .contains("X-Request-Id: my-id.7")
        .contains("\"code\":\"unknown_field\"")
        .contains("Unknown query parameter 'y'")
        .contains("\"remedy\":\"Use only: x.\"")
        .contains("\"request_id\":\"my-id.7\"");
  }

  @Test
  void insaneRequestIdsAreReplaced() throws Exception {
    String answer = ask("GET /hello HTTP/1.1\r\nHost: x\r\nX-Request-Id: a b<>\r\n\r\n");
    assertThat(answer).contains("X-Request-Id: req-");
  }

  @Test
  void badEscapesAre400() throws Exception {
    for (String target :
        new String[] {"/items/%zz", "/items/%", "/items/%f", "/items/%ff", "/query?x=%zz"}) {
      assertThat(get(target)).as(target).startsWith("HTTP/1.1 400").contains("problem+json");
    }
    assertThat(get("/query?x=1&x=2")).startsWith("HTTP/1.1 400").contains("2 times");
    assertThat(get("/query?x=%C3%A4+b")).startsWith("HTTP/1.1 200");
  }

  @Test
  void garbageIs400() throws Exception {
    assertThat(ask("NONSENSE\r\n\r\n")).startsWith("HTTP/1.1 400");
    assertThat(ask("GET /hello HTTP/1.1\r\n\r\n")).startsWith("HTTP/1.1 400");
    assertThat(ask("GET /hello HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"))
        .startsWith("HTTP/1.1 400");
  }

  @Test
  void headersOverTheLimitAre431() throws Exception {
    String big = "x".repeat(20_000);
    assertThat(ask("GET /hello HTTP/1.1\r\nHost: x\r\nBig: " + big + "\r\n\r\n"))
        .startsWith("HTTP/1.1 431")
        .contains("headers_too_large");
    assertThat(ask("GET /" + big + " HTTP/1.1\r\nHost: x\r\n\r\n")).startsWith("HTTP/1.1 414");
  }

  @Test
  void bodiesOverTheLimitAre413AndTheConnectionGoesOn() throws Exception {
    try (RawClient client = server.client()) {
      client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n");
      client.send("y".repeat(2000));
      assertThat(client.readAnswer()).startsWith("HTTP/1.1 413").contains("body_too_large");
      client.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
      assertThat(client.readAnswer()).startsWith("HTTP/1.1 200");
    }
  }

  @Test
  void chunkedBodiesOverTheLimitAre413() throws Exception {
    try (RawClient client = server.client()) {
      client.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
      client.send("7d0\r\n" + "y".repeat(2000) + "\r\n0\r\n\r\n");
      assertThat(client.readAnswer()).startsWith("HTTP/1.1 413");
    }
  }

  @Test
  void chunkedBodiesAreRead() throws Exception {
    assertThat(
            ask(
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"))
        .endsWith("abcde");
    assertThat(ask("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nabc"))
        .startsWith("HTTP/1.1 400")
        .contains("malformed_body");
  }

  @Test
  void expectedContinueIsSentBeforeTheBody() throws Exception {
    try (RawClient client = server.client()) {
      client.send(
          "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
      assertThat(client.readUntil("\r\n\r\n")).startsWith("HTTP/1.1 100");
      assertThat(client.send("abc").readAnswer()).startsWith("HTTP/1.1 200").endsWith("abc");
    }
  }

  @Test
  void aBodyThatIsTooLargeIsRefusedInsteadOfContinued() throws Exception {
    String answer =
        ask(
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3000\r\nExpect: 100-continue\r\n\r\n");
    assertThat(answer).startsWith("HTTP/1.1 413");
  }

  @Test
  void aClientThatStopsSendingIsToldSo() throws Exception {
    String answer = ask("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\n\r\nabc");
    assertThat(answer).startsWith("HTTP/1.1 408").contains("request_timeout");
  }

  @Test
  void defectsAre500WithoutTheirInside() throws Exception {
    assertThat(get("/defect"))
        .startsWith("HTTP/1.1 500")
        .contains("\"code\":\"internal\"")
        .doesNotContain("NullPointer");
  }

  @Test
  void anAbortedAnswerHasNoCleanEnd() throws Exception {
    try (RawClient client = server.client()) {
      String answer = client.send("GET /half HTTP/1.1\r\nHost: x\r\n\r\n").readAll();
      assertThat(answer).contains("part").doesNotContain("0\r\n\r\n");
    }
    try (RawClient client = server.client()) {
      client.send("GET /half HTTP/1.0\r\n\r\n");
      assertThat(org.assertj.core.api.Assertions.catchThrowable(client::readAll))
          .isInstanceOf(java.net.SocketException.class);
    }
  }

  @Test
  void speaksHttp2InClearText() throws Exception {
    try (HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_2).build()) {
      HttpResponse<String> answer =
          client.send(
              HttpRequest.newBuilder(URI.create(server.url("/hello"))).build(),
              HttpResponse.BodyHandlers.ofString());
      assertThat(answer.version()).isEqualTo(HttpClient.Version.HTTP_2);
      assertThat(answer.body()).isEqualTo("hello");
      assertThat(
              org.assertj.core.api.Assertions.catchThrowable(
                  () ->
                      client.send(
                          HttpRequest.newBuilder(URI.create(server.url("/half"))).build(),
                          HttpResponse.BodyHandlers.ofString())))
          .isInstanceOf(java.io.IOException.class);
    }
  }

  @Test
  void pipelinedRequestsAreAnsweredInOrder() throws Exception {
    try (RawClient client = server.client()) {
      String one = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n";
      client.send(one + "GET /items/7 HTTP/1.1\r\nHost: x\r\n\r\n");
      assertThat(client.readAnswer()).endsWith("hello");
      assertThat(client.readAnswer()).endsWith("{\"id\":\"7\"}");
    }
  }

  @Test
  void aClientThatNeverEndsItsHeadIsLetGo() throws Exception {
    try (RawClient client = server.client()) {
      String answer = client.send("GET /hello HTTP/1.1\r\nHost:").readAll();
      assertThat(answer)
          .satisfiesAnyOf(
              a -> assertThat(a).isEmpty(), a -> assertThat(a).startsWith("HTTP/1.1 4"));
    }
  }

  @Test
  void requestsAreSentTheirWayByHost() throws Exception {
    Handler ports = e -> e.send("text/plain", "port".getBytes(StandardCharsets.UTF_8));
    Handler api = e -> e.send("text/plain", "api".getBytes(StandardCharsets.UTF_8));
    try (var byHost =
            new TestServer(
                new HostDispatch(
                    name ->
                        name.endsWith(".box.test")
                            ? java.util.Optional.of(ports)
                            : java.util.Optional.empty(),
                    api));
        RawClient client = byHost.client()) {
      client.send("GET / HTTP/1.1\r\nHost: 80-X.Box.test:8701\r\n\r\n");
      assertThat(client.readAnswer()).endsWith("port");
      client.send("GET / HTTP/1.1\r\nHost: [::1]:8701\r\n\r\n");
      assertThat(client.readAnswer()).endsWith("api");
    }
  }

  @Test
  void theHostIsAsTheClientSaid() throws Exception {
    assertThat(ask("GET /host HTTP/1.1\r\nHost: 80-abc.sandbox.test:8701\r\n\r\n"))
        .endsWith("{\"host\":\"80-abc.sandbox.test:8701\"}");
    assertThat(ask("GET http://abs.test/host HTTP/1.1\r\nHost: abs.test\r\n\r\n"))
        .endsWith("{\"host\":\"abs.test\"}");
  }
}
