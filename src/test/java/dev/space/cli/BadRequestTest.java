package dev.space.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.LoggerFactory;
import tools.jackson.databind.JsonNode;

/// What is wrong with a request is told by the running service, on both of its planes: 4xx with
/// what, why and what to do, at once, and never a 5xx.
@Timeout(60)
class BadRequestTest {

  private static final HttpClient HTTP =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  private static final String JSON = "application/json";

  @TempDir static Path dir;

  @SuppressWarnings("NullAway") // Set before all tests.
  private static LocalService service;

  private static String sandbox = "";
  private static String session = "";
  private static String token = "";

  @BeforeAll
  static void start() throws Exception {
    service = LocalService.start(dir, Map.of());
    sandbox = service.space("sandbox", "create").ok();
    var made =
        send(control("POST", sessions(), body("{\"argv\":[\"sleep\",\"600\"],\"start\":true}")));
    assertThat(made.statusCode()).isEqualTo(201);
    session = Json.read(made.body()).path("session").path("id").asString();
    token = Json.read(made.body()).path("attach_token").asString();
  }

  @AfterAll
  static void stop() {
    service.close();
    HTTP.close();
  }

  private static String sessions() {
    return "/v1/sandboxes/" + sandbox + "/sessions";
  }

  private static String files() {
    return "/v1/sandboxes/" + sandbox + "/files";
  }

  private static String attach() {
    return "/v1/attach/" + session;
  }

  private static BodyPublisher body(String text) {
    return BodyPublishers.ofString(text);
  }

  private static HttpRequest.Builder request(
      String url, String method, BodyPublisher body, String key) {
    return HttpRequest.newBuilder(URI.create(url))
        .timeout(Duration.ofSeconds(20))
        .header("Authorization", "Bearer " + key)
        .header("Content-Type", JSON)
        .method(method, body);
  }

  private static HttpRequest.Builder control(String method, String path, BodyPublisher body) {
    return request(service.controlUrl() + path, method, body, service.key());
  }

  private static HttpRequest.Builder data(String method, String path, BodyPublisher body) {
    return request(
        service.dataUrl() + path,
        method,
        body,
        path.startsWith("/v1/attach") ? token : service.key());
  }

  private static HttpResponse<String> send(HttpRequest.Builder request) {
    try {
      return HTTP.send(request.build(), BodyHandlers.ofString());
    } catch (IOException e) {
      throw new AssertionError(request.build().toString(), e);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /// Holds an answer against everything an error has to be.
  private static JsonNode refused(HttpRequest.Builder request, int status, String code) {
    var answer = send(request);
    String what = answer.request() + " -> " + answer.body();
    assertThat(answer.statusCode()).as(what).isEqualTo(status);
    assertThat(answer.headers().firstValue("Content-Type").orElse(""))
        .as(what)
        .contains("application/problem+json");
    JsonNode problem = Json.read(answer.body());
    assertThat(problem.path("code").asString()).as(what).isEqualTo(code);
    assertThat(problem.path("status").asInt()).as(what).isEqualTo(status);
    assertThat(problem.path("detail").asString()).as(what).isNotBlank();
    assertThat(problem.path("remedy").asString()).as(what).isNotBlank();
    assertThat(problem.path("request_id").asString())
        .as(what)
        .isEqualTo(answer.headers().firstValue("X-Request-Id").orElseThrow());
    return problem;
  }

  private static void stillServes() {
    assertThat(send(control("GET", "/v1/sandboxes", BodyPublishers.noBody())).statusCode())
        .isEqualTo(200);
    assertThat(send(data("GET", files() + "/stat?path=/tmp", BodyPublishers.noBody())).statusCode())
        .isEqualTo(200);
  }

  @Test
  @DisplayName("behaviour 38: broken JSON is refused on every call that takes some")
  void brokenJson() {
    List<String> calls =
        List.of(
            "/v1/sandboxes",
            sessions(),
            "/v1/sandboxes/" + sandbox + "/fork",
            "/v1/sandboxes/" + sandbox + "/snapshots");
    for (String broken : List.of("{", "{\"a\":}", "nonsense", "\u0000", "{\"a\":".repeat(400))) {
      for (String call : calls) {
        refused(control("POST", call, body(broken)), 400, "malformed_body");
      }
      refused(control("PATCH", "/v1/sandboxes/" + sandbox, body(broken)), 400, "malformed_body");
      refused(data("POST", files() + "/mkdir", body(broken)), 400, "malformed_body");
      refused(data("POST", files() + "/move", body(broken)), 400, "malformed_body");
      refused(data("POST", attach() + "/signal", body(broken)), 400, "malformed_body");
      refused(data("POST", attach() + "/resize", body(broken)), 400, "malformed_body");
    }
    stillServes();
  }

  @Test
  @DisplayName(
      "behaviours 37, 40: a wrong key opens nothing and is told apart from none by nothing")
  void wrongKey() {
    String bad = service.key().substring(0, service.key().length() - 1) + "~";
    for (String key : List.of(bad, "x", token, "Bearer " + service.key())) {
      for (String path : List.of("/v1/sandboxes", "/v1/events", sessions(), "/v1/node")) {
        refused(
            request(service.controlUrl() + path, "GET", BodyPublishers.noBody(), key),
            401,
            "unauthenticated");
      }
      refused(
          request(
              service.dataUrl() + files() + "?path=/etc/hostname",
              "GET",
              BodyPublishers.noBody(),
              key),
          401,
          "unauthenticated");
    }
    for (String key : List.of(bad, service.key(), token + "A")) {
      refused(
          request(service.dataUrl() + attach(), "GET", BodyPublishers.noBody(), key),
          401,
          "unauthenticated");
    }
    stillServes();
  }

  @Test
  @DisplayName("behaviour 38: a wrong media type is a 415 that names the right one")
  void wrongType() {
    for (String path : List.of("/v1/sandboxes", sessions())) {
      for (String type : List.of("text/plain", "application/xml", "multipart/form-data")) {
        JsonNode problem =
            refused(
                control("POST", path, body("{}")).setHeader("Content-Type", type),
                415,
                "unsupported_media_type");
        assertThat(problem.toString()).contains(JSON);
      }
    }
    for (String call : List.of(files() + "/mkdir", attach() + "/signal")) {
      refused(
          data("POST", call, body("{}")).setHeader("Content-Type", "text/plain"),
          415,
          "unsupported_media_type");
    }
    refused(
        control("POST", "/v1/templates?tag=x", body("{}")).setHeader("Content-Type", "text/plain"),
        415,
        "unsupported_media_type");
    stillServes();
  }

  @Test
  @DisplayName("behaviour 38: a huge body is a 413, with a length and without")
  void hugeBody() {
    String huge = "{\"template\":\"" + "x".repeat(3 << 20) + "\"}";
    byte[] bytes = huge.getBytes(StandardCharsets.US_ASCII);
    for (int i = 0; i < 3; i++) {
      refused(control("POST", "/v1/sandboxes", body(huge)), 413, "body_too_large");
      refused(
          control(
              "POST",
              "/v1/sandboxes",
              BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(bytes))),
          413,
          "body_too_large");
      refused(data("POST", files() + "/mkdir", body(huge)), 413, "body_too_large");
      refused(data("POST", attach() + "/signal", body(huge)), 413, "body_too_large");
    }
    stillServes();
  }

  @Test
  @DisplayName("behaviour 38: a wrong method is a 405 that names the right ones")
  void wrongMethod() {
    for (String method : List.of("PUT", "PATCH", "DELETE", "BREW")) {
      var request = control(method, "/v1/sandboxes", BodyPublishers.noBody());
      refused(request, 405, "method_not_allowed");
      assertThat(send(request).headers().firstValue("Allow").orElse("")).contains("GET", "POST");
    }
    refused(control("POST", "/healthz", body("{}")), 405, "method_not_allowed");
    refused(data("PATCH", files() + "?path=/x", body("{}")), 405, "method_not_allowed");
    refused(data("DELETE", attach(), BodyPublishers.noBody()), 405, "method_not_allowed");
    refused(control("GET", "/v1/nothing", BodyPublishers.noBody()), 404, "not_found");
    refused(data("GET", "/v2/anything", BodyPublishers.noBody()), 404, "not_found");
    stillServes();
  }

  @Test
  @DisplayName("behaviour 38: what is no HTTP at all gets an answer or an end, and harms nobody")
  void noHttp() throws Exception {
    for (String url : List.of(service.controlUrl(), service.dataUrl())) {
      int port = URI.create(url).getPort();
      for (String said :
          List.of(
              "\u0016\u0003\u0001\u0002\u0000\r\n\r\n",
              "GET\r\n\r\n",
              "GET / HTTP/9.9\r\n\r\n",
              "GET /v1/sandboxes HTTP/1.1\r\n\r\n",
              "POST /v1/sandboxes HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
              "POST /v1/sandboxes HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
                  + "Content-Length: 2\r\n\r\nab",
              "GET /" + "x".repeat(40_000) + " HTTP/1.1\r\nHost: a\r\n\r\n")) {
        try (Socket socket = new Socket("127.0.0.1", port)) {
          socket.setSoTimeout(20_000);
          socket.getOutputStream().write(said.getBytes(StandardCharsets.ISO_8859_1));
          socket.shutdownOutput();
          String answer =
              new String(socket.getInputStream().readAllBytes(), StandardCharsets.ISO_8859_1);
          if (!answer.isEmpty()) {
            assertThat(answer).as(said).startsWith("HTTP/1.1 4");
          }
        } catch (java.net.SocketException e) {
          // A reset is an end too.
        }
      }
    }
    stillServes();
  }

  @Test
  @DisplayName("behaviour 37: the request id of an error is the one of its lines in the log")
  void requestIdsAreInTheLog() {
    var lines = new ConcurrentLinkedQueue<ILoggingEvent>();
    var appender =
        new AppenderBase<ILoggingEvent>() {
          @Override
          protected void append(ILoggingEvent event) {
            event.prepareForDeferredProcessing();
            lines.add(event);
          }
        };
    var logger = (Logger) LoggerFactory.getLogger("dev.space");
    Level before = logger.getLevel();
    appender.start();
    logger.addAppender(appender);
    logger.setLevel(Level.DEBUG);
    try {
      JsonNode problem =
          refused(control("POST", "/v1/sandboxes", body("{")), 400, "malformed_body");
      String id = problem.path("request_id").asString();
      await().until(() -> lines(lines, id).contains("POST /v1/sandboxes -> 400"));
    } finally {
      logger.setLevel(before);
      logger.detachAppender(appender);
    }
  }

  private static String lines(Collection<ILoggingEvent> all, String requestId) {
    return all.stream()
        .filter(line -> requestId.equals(line.getMDCPropertyMap().get("request_id")))
        .map(ILoggingEvent::getFormattedMessage)
        .toList()
        .toString();
  }
}
