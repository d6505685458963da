package dev.space.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import dev.space.core.Samples;
import dev.space.core.operation.OperationKind;
import dev.space.core.session.ScriptedGuest;
import dev.space.http.RawClient;
import dev.space.http.Route;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.LoggerFactory;
import tools.jackson.databind.JsonNode;

/// The control plane over HTTP; every exchange is held against the contract.
@Timeout(60)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ApiTest {
  private final ApiFixture api;

  ApiTest(@TempDir Path root) {
    api = new ApiFixture(root);
  }

  @BeforeAll
  void sandboxes() {
    api.host.add("boxaaaaaaaaaaaaaaaaa", new ScriptedGuest());
  }

  @AfterAll
  void close() {
    api.close();
  }

  private String operation(String id, String project, long millis) {
    api.store.transact(
        tx -> {
          tx.operations()
              .insert(
                  Samples.operation(
                      id,
                      project,
                      Optional.of("boxaaaaaaaaaaaaaaaaa"),
                      OperationKind.PAUSE,
                      Samples.NOW.plusMillis(millis)),
                  Map.of());
          return true;
        });
    return id;
  }

  @Test
  void routesAndContractHaveTheSameCalls() {
    var routed = new TreeSet<String>();
    for (Route route : api.router.routes()) {
      routed.add(route.method() + " " + route.template());
    }
    assertThat(routed).isEqualTo(api.contract.controlPlane());
  }

  /// Behaviour 40.
  @Test
  void everyCallButTheOpenOnesNeedsAKey() {
    for (Route route : api.router.routes()) {
      String target = route.template().replaceAll("\\{[a-z_]+}", "x");
      var answer = api.nobody.call(route.method(), target, Map.of(), "");
      switch (target) {
        case "/healthz", "/readyz", "/metrics", "/openapi.yaml" ->
            assertThat(answer.status()).as(target).isEqualTo(200);
        default -> {
          assertThat(answer.status()).as(target).isEqualTo(401);
          assertThat(answer.headers()).containsEntry("www-authenticate", "Bearer");
        }
      }
    }
    assertThat(api.nobody.call("GET", "/v1/node", Map.of("X-API-Key", api.key), "").status())
        .isEqualTo(200);
    assertThat(api.nobody.call("GET", "/v1/node", Map.of("X-API-Key", "e2b_00"), "").status())
        .isEqualTo(401);
  }

  /// Behaviours 36, 37, 38.
  @Test
  void badRequestsAreNamed() {
    record Bad(String body, int status, String code, String about) {}
    for (Bad bad :
        List.of(
            new Bad("{", 400, "malformed_body", "JSON"),
            new Bad("null", 400, "malformed_body", "JSON"),
            new Bad("[]", 400, "invalid_request", "an object"),
            new Bad("{} {}", 400, "", ""),
            new Bad("{\"template\":\"base\",\"template\":\"base\"}", 400, "malformed_body", ""),
            new Bad("{\"tmplate\":\"base\"}", 400, "unknown_field", "tmplate"),
            new Bad(
                "{\"template\":\"base\",\"resources\":{\"cpus\":1}}",
                400,
                "unknown_field",
                "resources.cpus"),
            new Bad("{\"template\":7}", 400, "invalid_request", "template"),
            new Bad(
                "{\"template\":\"base\",\"resources\":{\"vcpus\":\"2\"}}",
                400,
                "invalid_request",
                "resources.vcpus"),
            new Bad(
                "{\"template\":\"base\",\"resources\":{\"vcpus\":1.5}}",
                400,
                "invalid_request",
                "resources.vcpus"),
            new Bad(
                "{\"template\":\"base\",\"resources\":{\"vcpus\":1e300}}",
                400,
                "invalid_request",
                "resources.vcpus"),
            new Bad(
                "{\"template\":\"base\",\"resources\":{\"vcpus\":99999999999999999999}}",
                400,
                "invalid_request",
                "resources.vcpus"),
            new Bad("{\"template\":\"base\",\"env\":{\"A\":null}}", 400, "invalid_request", "env"),
            new Bad("{\"template\":\"base\",\"env\":[]}", 400, "invalid_request", "env"),
            new Bad(
                "{\"template\":\"base\",\"timeout\":\"soon\"}", 400, "invalid_request", "timeout"),
            new Bad("{\"template\":\"base\",\"timeout\":30}", 400, "invalid_request", "timeout"),
            new Bad(
                "{\"template\":\"base\",\"on_timeout\":\"x\"}",
                400,
                "invalid_request",
                "on_timeout"),
            new Bad("{\"template\":\"Not A Ref\"}", 400, "invalid_request", "Not A Ref"),
            new Bad("{}", 400, "invalid_request", "template"),
            new Bad(
                "{\"template\":\"base\",\"snapshot_id\":\"x\"}", 400, "invalid_request", "Both"),
            new Bad("[".repeat(5000), 400, "", ""),
            new Bad(
                "{\"template\":\"" + "x".repeat(1_100_000) + "\"}", 413, "body_too_large", ""))) {
      String shown = bad.body().substring(0, Math.min(60, bad.body().length()));
      var answer = api.mine.post("/v1/sandboxes", bad.body());
      assertThat(answer.status()).as(shown).isEqualTo(bad.status());
      if (!bad.code().isEmpty()) {
        assertThat(answer.at("code")).as(shown).isEqualTo(bad.code());
      }
      assertThat(answer.body()).as(shown).contains(bad.about());
      assertThat(answer.at("remedy")).as(shown).isNotEmpty();
    }
    var typed = api.mine.call("POST", "/v1/sandboxes", Map.of("content-type", "text/plain"), "{}");
    assertThat(typed.status()).isEqualTo(415);
    var query = api.mine.get("/v1/sandboxes?colour=red");
    assertThat(query.at("code")).isEqualTo("unknown_field");
    assertThat(query.at("detail")).contains("colour");
    for (String target :
        List.of(
            "/v1/sandboxes?limit=0",
            "/v1/sandboxes?limit=x",
            "/v1/sandboxes?state=flying",
            "/v1/sandboxes?metadata=x",
            "/v1/operations?limit=99999999999999999999999",
            "/v1/operations/x?wait=ages",
            "/v1/operations?cursor=%00garbage")) {
      assertThat(api.mine.get(target).status()).as(target).isEqualTo(400);
    }
  }

  /// Behaviour 39.
  @Test
  void projectsDoNotSeeEachOther() {
    operation("op-mine", "p", 1);
    assertThat(api.mine.get("/v1/operations/op-mine").status()).isEqualTo(200);
    var foreign = api.theirs.get("/v1/operations/op-mine");
    var missing = api.theirs.get("/v1/operations/op-none");
    assertThat(foreign.status()).isEqualTo(404);
    assertThat(foreign.at("code")).isEqualTo(missing.at("code"));
    assertThat(foreign.at("detail").replace("op-mine", "*"))
        .isEqualTo(missing.at("detail").replace("op-none", "*"));
    assertThat(api.theirs.get("/v1/operations").json().path("items").size()).isZero();
    String sessions = "/v1/sandboxes/boxaaaaaaaaaaaaaaaaa/sessions";
    assertThat(api.theirs.post(sessions, "{\"argv\":[\"true\"]}").status()).isEqualTo(404);
    assertThat(api.theirs.get(sessions).status()).isEqualTo(404);
  }

  /// Behaviour 36.
  @Test
  void listsAreCompleteWhileThingsChange() {
    for (int i = 0; i < 30; i++) {
      operation("list-%03d".formatted(i), "p", 1000 + i);
    }
    var seen = new ArrayList<String>();
    String next = "";
    int added = 0;
    do {
      JsonNode page = api.mine.get("/v1/operations?limit=7" + next).json();
      page.path("items").forEach(item -> seen.add(item.path("id").asString()));
      operation("later-%03d".formatted(added), "p", 5000 + added++);
      String cursor = page.path("next").asString("");
      next = cursor.isEmpty() ? "" : "&cursor=" + URLEncoder.encode(cursor, StandardCharsets.UTF_8);
    } while (!next.isEmpty());
    List<String> listed = seen.stream().filter(id -> id.startsWith("list-")).toList();
    assertThat(listed).hasSize(30).doesNotHaveDuplicates();
    assertThat(listed).isSortedAccordingTo(java.util.Comparator.reverseOrder());
    assertThat(new LinkedHashSet<>(seen)).hasSameSizeAs(seen);
  }

  private String ended(ApiClient.Answer accepted, String state) {
    assertThat(accepted.status()).as(accepted.body()).isEqualTo(202);
    assertThat(accepted.headers()).containsEntry("location", "/v1/operations/" + accepted.at("id"));
    var over = api.mine.get(accepted.headers().get("location") + "?wait=20s");
    assertThat(over.at("state")).as(over.body()).isEqualTo(state);
    return over.json().path("result_ids").path(0).asString("");
  }

  @Test
  void aSandboxLivesThroughTheApi() {
    var created =
        api.mine.post(
            "/v1/sandboxes",
            "{\"template\":\"base\",\"timeout\":\"1h\",\"on_timeout\":\"suspend\","
                + "\"env\":{\"KEY\":\"hush\"},\"metadata\":{\"team\":\"a=b\"}}");
    String id = ended(created, "succeeded");
    String path = "/v1/sandboxes/" + id;
    var sandbox = api.mine.get(path);
    assertThat(sandbox.at("state")).isEqualTo("running");
    assertThat(sandbox.at("timeout")).isEqualTo("3600s");
    assertThat(sandbox.body()).doesNotContain("hush");
    assertThat(api.mine.get("/v1/sandboxes?metadata=team%3Da%3Db").body()).contains(id);
    assertThat(api.mine.get("/v1/sandboxes?metadata=team%3Dc").json().path("items").size())
        .isZero();
    assertThat(api.mine.get("/v1/sandboxes?state=running&state=paused&template=base").body())
        .contains(id);
    assertThat(api.mine.get("/v1/sandboxes?state=failed").body()).doesNotContain(id);
    var patched =
        api.mine.call(
            "PATCH",
            path,
            Map.of("content-type", "application/json"),
            "{\"timeout\":\"0\",\"metadata\":{}}");
    assertThat(patched.status()).as(patched.body()).isEqualTo(200);
    assertThat(patched.at("expires_at")).isEmpty();
    ended(api.mine.post(path + "/pause", "{}"), "succeeded");
    assertThat(api.mine.get(path).at("state")).isEqualTo("paused");
    ended(api.mine.post(path + "/wake", ""), "succeeded");
    ended(api.mine.post(path + "/suspend", ""), "succeeded");
    ended(api.mine.post(path + "/wake", ""), "succeeded");
    String snapshot = ended(api.mine.post(path + "/snapshots", "{\"name\":\"s\"}"), "succeeded");
    assertThat(api.mine.get("/v1/snapshots/" + snapshot).at("name")).isEqualTo("s");
    assertThat(api.theirs.get("/v1/snapshots/" + snapshot).status()).isEqualTo(404);
    String copy = ended(api.mine.post(path + "/fork", "{\"count\":2}"), "succeeded");
    assertThat(api.mine.get("/v1/sandboxes/" + copy).at("state")).isEqualTo("running");
    assertThat(api.mine.post(path + "/fork", "{\"count\":0}").status()).isEqualTo(400);
    for (String verb : List.of("", "/pause", "/sessions")) {
      String target = path + verb;
      int status =
          verb.equals("/pause")
              ? api.theirs.post(target, "").status()
              : api.theirs.get(target).status();
      assertThat(status).as(target).isEqualTo(404);
    }
    assertThat(api.theirs.delete(path).status()).isEqualTo(404);
    var first = api.mine.delete(path);
    ended(first, "succeeded");
    assertThat(api.mine.get(path).at("code")).isEqualTo("sandbox_not_found");
    assertThat(api.mine.delete(path).at("id")).isEqualTo(first.at("id"));
    assertThat(api.mine.delete("/v1/snapshots/" + snapshot).status()).isEqualTo(204);
    assertThat(api.mine.get("/v1/snapshots").body()).doesNotContain(snapshot);
  }

  /// Behaviour 25.
  @Test
  void aCreateThatIsRepeatedWithItsKeyMakesOneSandbox() {
    var headers = Map.of("content-type", "application/json", "Idempotency-Key", "create-once");
    var one = api.mine.call("POST", "/v1/sandboxes", headers, "{\"template\":\"base\"}");
    var two = api.mine.call("POST", "/v1/sandboxes", headers, "{\"template\":\"base\"}");
    assertThat(two.at("id")).isEqualTo(one.at("id"));
    var other = api.mine.call("POST", "/v1/sandboxes", headers, "{\"template\":\"base:other\"}");
    assertThat(other.at("code")).isEqualTo("idempotency_mismatch");
    assertThat(api.mine.post("/v1/sandboxes", "{\"template\":\"nope\"}").at("code"))
        .isEqualTo("template_not_found");
  }

  @Test
  void sessionsAreMadeAndTheirTokensRenewedAndRevoked() {
    String all = "/v1/sandboxes/boxaaaaaaaaaaaaaaaaa/sessions";
    var made = api.mine.post(all, "{\"argv\":[\"echo\",\"hi\"],\"timeout\":\"1m30s\",\"pty\":{}}");
    assertThat(made.status()).as(made.body()).isEqualTo(201);
    JsonNode session = made.json().path("session");
    assertThat(session.path("state").asString()).isEqualTo("created");
    assertThat(session.path("timeout").asString()).isEqualTo("90s");
    assertThat(session.path("pty").path("cols").asInt()).isEqualTo(80);
    String id = session.path("id").asString();
    assertThat(made.at("attach_url")).isEqualTo("http://127.0.0.1:8701/v1/attach/" + id);
    assertThat(made.headers()).containsEntry("cache-control", "no-store");
    assertThat(api.mine.get(all + "/" + id).status()).isEqualTo(200);
    assertThat(api.mine.get(all).json().path("items").size()).isPositive();
    assertThat(api.mine.post(all + "/" + id + "/attach", "{}").status()).isEqualTo(200);
    assertThat(api.mine.delete(all + "/" + id + "/attach").status()).isEqualTo(204);
    assertThat(api.mine.get(all + "/unknown").at("code")).isEqualTo("session_not_found");
    for (String body :
        List.of(
            "{}",
            "{\"argv\":[]}",
            "{\"argv\":[\"\"]}",
            "{\"argv\":[null]}",
            "{\"argv\":[\"a\"],\"command\":\"b\"}",
            "{\"argv\":\"ls\"}",
            "{\"argv\":[\"a\"],\"pty\":{\"cols\":-1}}",
            "{\"argv\":[\"a\"],\"stdin\":\"yes\"}")) {
      var refused = api.mine.post(all, body);
      assertThat(refused.status()).as(body + refused.body()).isEqualTo(400);
    }
  }

  @Test
  void aRepeatedKeyMakesOneSession() {
    String all = "/v1/sandboxes/boxaaaaaaaaaaaaaaaaa/sessions";
    var headers = Map.of("content-type", "application/json", "Idempotency-Key", "once");
    var one = api.mine.call("POST", all, headers, "{\"argv\":[\"a\"]}");
    var two = api.mine.call("POST", all, headers, "{\"argv\":[\"a\"]}");
    assertThat(two.json().path("session").path("id"))
        .isEqualTo(one.json().path("session").path("id"));
    var other = api.mine.call("POST", all, headers, "{\"argv\":[\"b\"]}");
    assertThat(other.status()).isEqualTo(409);
    assertThat(other.at("code")).isEqualTo("idempotency_mismatch");
    var bad = Map.of("content-type", "application/json", "Idempotency-Key", "a b");
    assertThat(api.mine.call("POST", all, bad, "{\"argv\":[\"a\"]}").status()).isEqualTo(400);
  }

  @Test
  void eventsStreamAndFailWithAReason() throws Exception {
    try (RawClient client = api.server.client()) {
      client.send(
          "GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + api.key + "\r\n\r\n");
      assertThat(client.readUntil(": keep-alive")).contains("text/event-stream");
      api.mine.post("/v1/sandboxes", "{\"template\":\"base\"}");
      client.readUntil("data: ");
      String event = client.readUntil("\n");
      assertThat(api.contract.against("Event", event.strip())).isEmpty();
    }
    var refused = api.mine.call("GET", "/v1/events", Map.of("Last-Event-ID", "abc"), "");
    assertThat(refused.status()).isEqualTo(400);
  }

  @Test
  void anOperationIsWaitedFor() throws Exception {
    operation("op-wait", "p", 3);
    long start = System.nanoTime();
    assertThat(api.mine.get("/v1/operations/op-wait?wait=300ms").at("state")).isEqualTo("pending");
    assertThat(System.nanoTime() - start).isGreaterThan(250_000_000L);
  }

  @Test
  void readinessSaysWhyNot() {
    api.notReady = Optional.of("the base template is being built");
    var answer = api.nobody.get("/readyz");
    api.notReady = Optional.empty();
    assertThat(answer.status()).isEqualTo(503);
    assertThat(answer.at("cause")).contains("base template");
  }

  /// Behaviour 39: metrics.
  @Test
  void metricsCountWithoutNames() {
    operation("op-metrics", "p", 4);
    api.mine.get("/v1/operations/op-metrics");
    api.mine.get("/no/such/path/of-a-tenant");
    api.mine.post("/v1/sandboxes", "{\"template\":\"base\"}");
    // A request is counted after its answer.
    await()
        .until(() -> api.nobody.get("/metrics").body().contains("route=\"/v1/operations/{id}\""));
    String text = api.nobody.get("/metrics").body();
    assertThat(text)
        .contains("space_http_requests_total{")
        .contains("route=\"/v1/operations/{id}\"")
        .contains("jvm_")
        .contains("space_vms_max 100.0")
        .contains("space_sandboxes{state=")
        .doesNotContain("op-metrics")
        .doesNotContain("of-a-tenant");
    var proxied = Map.of("X-Forwarded-For", "192.0.2.1");
    assertThat(api.nobody.call("GET", "/metrics", proxied, "").status()).isEqualTo(401);
    assertThat(api.mine.call("GET", "/metrics", proxied, "").status()).isEqualTo(200);
  }

  /// Behaviour 40.
  @Test
  void secretsAreNotLogged() throws Exception {
    var root = (Logger) LoggerFactory.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME);
    var http = (Logger) LoggerFactory.getLogger("dev.space");
    var captured = new Captured();
    captured.start();
    root.addAppender(captured);
    Level before = http.getLevel();
    http.setLevel(Level.TRACE);
    try {
      api.mine.get("/v1/node?token=hush-hush");
      api.nobody.call("GET", "/v1/node", Map.of("Authorization", "Bearer hush-hush"), "");
      api.nobody.call("GET", "/v1/node", Map.of("X-API-Key", "hush-hush"), "");
      api.mine.post("/v1/sandboxes", "{\"template\":\"x\",\"env\":{\"A\":\"hush-hush\"},\"q\":1}");
      var ticket =
          api.mine.post(
              "/v1/sandboxes/boxaaaaaaaaaaaaaaaaa/sessions",
              "{\"argv\":[\"a\"],\"env\":{\"S\":\"hush-hush\"}}");
      String last = ticket.headers().getOrDefault("x-request-id", "");
      // The line of a request is written after its answer.
      await()
          .until(
              () ->
                  captured.events.stream()
                      .anyMatch(e -> last.equals(e.getMDCPropertyMap().get("request_id"))));
      String log =
          captured.events.stream()
              .map(e -> e.getFormattedMessage() + e.getMDCPropertyMap() + e.getThrowableProxy())
              .toList()
              .toString();
      assertThat(log)
          .contains("GET /v1/node -> 401")
          .doesNotContain("hush-hush")
          .doesNotContain(api.key)
          .doesNotContain(ticket.at("attach_token"));
    } finally {
      root.detachAppender(captured);
      http.setLevel(before);
    }
  }

  private static final class Captured extends AppenderBase<ILoggingEvent> {
    final List<ILoggingEvent> events = new CopyOnWriteArrayList<>();

    @Override
    protected void append(ILoggingEvent event) {
      event.prepareForDeferredProcessing();
      events.add(event);
    }
  }
}
