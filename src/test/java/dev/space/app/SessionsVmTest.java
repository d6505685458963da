package dev.space.app;

import static dev.space.app.RealPlane.PATIENCE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.space.http.Json;
import dev.space.wire.EventReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/// Streams and processes of a real VM, over the API as its callers have it.
@Tag("vm")
@Tag("slow")
@Timeout(180)
@ExtendWith(RealPlane.Shared.class)
class SessionsVmTest {

  private final RealPlane plane;

  SessionsVmTest(RealPlane plane) {
    this.plane = plane;
  }

  private JsonNode session(String id) {
    return plane.call("GET", plane.sessions() + "/" + id, "");
  }

  private void post(RealPlane.Ticket ticket, String what, String body) {
    var answer =
        plane.send(
            HttpRequest.newBuilder(URI.create(plane.dataUrl() + "/v1/attach/" + ticket.id() + what))
                .header("Authorization", "Bearer " + ticket.token())
                .header("Content-Type", "application/json")
                .POST(BodyPublishers.ofString(body)));
    assertThat(answer.statusCode()).as(answer.body()).isLessThan(300);
  }

  /// How many processes of the guest have this in their command line.
  private int living(String mark) {
    // The pattern doesn't match its own command line.
    String pattern = "[" + mark.charAt(0) + "]" + mark.substring(1);
    return Integer.parseInt(
        plane
            .run(
                "{\"argv\":[\"sh\",\"-c\",\"pgrep -fc '"
                    + pattern
                    + "' || true\"],\"user\":\"root\"}")
            .text()
            .strip());
  }

  @Test
  @DisplayName("behaviour 1: cat without stdin ends at once")
  void noInput() {
    long start = System.nanoTime();
    assertThat(plane.run("{\"argv\":[\"cat\"]}").code()).isZero();
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(20));
  }

  @Test
  @DisplayName("behaviour 2: a client's own open stdin keeps no finished command from returning")
  void openClientInput(@TempDir Path dir) throws Exception {
    Path out = dir.resolve("out");
    // The process's stdin is a pipe that is never written to and never closed.
    Process client = plane.spaceProcess(out, "exec", plane.sandbox(), "--", "echo", "done");
    assertThat(client.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(client.exitValue()).isZero();
    assertThat(Files.readString(out)).isEqualTo("done\n");
  }

  @Test
  @DisplayName("behaviours 3 and 5: every byte, no newline invented, the status beside the output")
  void bytesAreExact() {
    var all =
        plane.run(
            "{\"argv\":[\"python3\",\"-c\",\"import sys; sys.stdout.buffer.write(bytes(range(256)) * 300);"
                + " sys.stderr.write('no newline'); sys.exit(7)\"]}");
    byte[] expected = new byte[256 * 300];
    for (int i = 0; i < expected.length; i++) {
      expected[i] = (byte) i;
    }
    assertThat(all.out()).isEqualTo(expected);
    assertThat(all.errors()).isEqualTo("no newline");
    assertThat(all.code()).isEqualTo(7);
    assertThat(plane.sh("exit 0").out()).isEmpty();

    // Each byte of the character is written alone, so that chunks end inside it.
    var split =
        plane.run(
            "{\"argv\":[\"python3\",\"-uc\",\"import os,time\\nfor b in bytes.fromhex('61e282acf09f98807a'):\\n"
                + " os.write(1, bytes([b])); time.sleep(0.02)\"]}");
    assertThat(split.text()).isEqualTo("a\u20ac\uD83D\uDE00z");
    split.events().stream()
        .filter(e -> e.name().equals("stdout"))
        .forEach(e -> assertThat(e.data()).doesNotContain("base64").doesNotContain("\uFFFD"));
  }

  @Test
  @DisplayName("behaviours 6 and 7: 40 MiB reach a live reader whole; who comes later gets one gap")
  void muchOutput() throws Exception {
    var ticket = plane.session("{\"command\":\"head -c 41943040 /dev/zero\"}");
    long bytes = 0;
    try (InputStream body = plane.attach(ticket, 0, "&encoding=base64").body()) {
      var reader = new EventReader(body);
      String last = "";
      for (var next = reader.next(); next.isPresent(); next = reader.next()) {
        last = next.get().name();
        assertThat(last).isNotEqualTo("gap");
        if (last.equals("stdout")) {
          bytes += RealPlane.bytes(Json.mapper().readTree(next.get().data())).length;
        }
      }
      assertThat(last).isEqualTo("exit");
    }
    assertThat(bytes).isEqualTo(40L << 20);
    var late = plane.follow(ticket, 0, "&encoding=base64");
    var gaps = late.events().stream().filter(e -> e.name().equals("gap")).toList();
    assertThat(gaps).hasSize(1);
    long missing = Json.mapper().readTree(gaps.getFirst().data()).path("bytes").asLong();
    assertThat(missing + late.out().length).isEqualTo(40L << 20);
  }

  @Test
  @DisplayName("behaviours 9 and 12: sessions go on through a suspend, a wake and another daemon")
  void sessionsGoOn() throws Exception {
    var ticket =
        plane.session(
            "{\"command\":\"for i in $(seq 1 120); do echo line $i; sleep 0.1; done; exit 3\","
                + "\"start\":true,\"keep\":true,\"tag\":\"counter\"}");
    long seen = 0;
    var text = new ByteArrayOutputStream();
    try (InputStream body = plane.attach(ticket, 0, "").body()) {
      var reader = new EventReader(body);
      while (text.size() < 20) {
        var event = reader.next().orElseThrow();
        seen = Long.parseLong(event.id().orElseThrow());
        if (event.name().equals("stdout")) {
          text.writeBytes(RealPlane.bytes(Json.mapper().readTree(event.data())));
        }
      }
    }
    plane.operate("suspend");
    plane.operate("wake");
    plane.restart();
    assertThat(session(ticket.id()).path("state").asString()).isEqualTo("running");
    assertThat(plane.call("GET", plane.sessions(), "").path("items").toString())
        .contains("\"tag\":\"counter\"");
    var rest = plane.follow(ticket, seen, "");
    text.writeBytes(rest.out());
    var expected = new StringBuilder();
    for (int i = 1; i <= 120; i++) {
      expected.append("line ").append(i).append('\n');
    }
    assertThat(text.toString(StandardCharsets.UTF_8)).isEqualTo(expected.toString());
    assertThat(rest.code()).isEqualTo(3);
    long[] ids =
        rest.events().stream()
            .filter(e -> e.id().isPresent())
            .mapToLong(e -> Long.parseLong(e.id().orElseThrow()))
            .toArray();
    for (int i = 0; i < ids.length; i++) {
      assertThat(ids[i]).isEqualTo(seen + 1 + i);
    }
  }

  @Test
  @DisplayName("behaviour 10: a create that is sent again with its key starts one process")
  void oneProcess() {
    String body = "{\"command\":\"echo once >> /tmp/once; sleep 1\",\"start\":true}";
    String first = keyed(body).path("session").path("id").asString();
    String second = keyed(body).path("session").path("id").asString();
    assertThat(second).isEqualTo(first);
    await().atMost(PATIENCE).until(() -> session(first).path("state").asString().equals("exited"));
    assertThat(plane.sh("cat /tmp/once").text()).isEqualTo("once\n");
  }

  private JsonNode keyed(String body) {
    return Json.mapper()
        .readTree(
            plane
                .send(
                    plane
                        .authorized(plane.controlUrl() + plane.sessions())
                        .header("Idempotency-Key", "one-process")
                        .header("Content-Type", "application/json")
                        .POST(BodyPublishers.ofString(body)))
                .body());
  }

  @Test
  @DisplayName("behaviour 11: kill and timeout end the whole tree, whatever it did to get away")
  void wholeTree() {
    String escape =
        "sleep 9871 & setsid sleep 9871 & (setsid nohup sh -c 'sleep 9871 & sleep 9871' &) ; sleep 9871";
    var killed = plane.session("{\"command\":" + RealPlane.quoted(escape) + ",\"start\":true}");
    await().atMost(PATIENCE).until(() -> living("sleep 9871") >= 5);
    JsonNode ended = plane.call("DELETE", plane.sessions() + "/" + killed.id(), "");
    assertThat(ended.path("exit").path("signal").asInt()).isEqualTo(9);
    assertThat(living("sleep 9871")).isZero();

    var timed = plane.run("{\"command\":" + RealPlane.quoted(escape) + ",\"timeout\":\"2s\"}");
    assertThat(timed.exit().path("timed_out").asBoolean()).isTrue();
    assertThat(timed.exit().path("signal").asInt()).isEqualTo(9);
    assertThat(living("sleep 9871")).isZero();
  }

  @Test
  @DisplayName("behaviour 13: orphans are reaped and never steal an exit status")
  void orphans() {
    var storm =
        plane.session(
            "{\"command\":\"for i in $(seq 1 80); do (sh -c 'true &' &); done; wait\",\"start\":true}");
    for (int i = 0; i < 8; i++) {
      assertThat(plane.sh("exit 3").code()).isEqualTo(3);
    }
    plane.follow(storm, 0, "");
    await()
        .atMost(PATIENCE)
        .until(() -> plane.sh("ps -eo stat= | grep -c ^Z || true").text().strip().equals("0"));
  }

  @Test
  @DisplayName("behaviour 14: death by signal is told from exit")
  void signals() {
    var died = plane.sh("kill -TERM $$");
    assertThat(died.exit().path("signal").asInt()).isEqualTo(15);
    assertThat(died.exit().path("signal_name").asString()).isEqualTo("SIGTERM");
    assertThat(died.exit().has("code")).isFalse();
    assertThat(plane.sh("exit 143").code()).isEqualTo(143);

    var ticket =
        plane.session(
            "{\"argv\":[\"sh\",\"-c\",\"trap 'echo got; exit 5' USR1; echo ready; while :; do sleep 0.1; done\"],\"start\":true}");
    await()
        .atMost(PATIENCE)
        .until(() -> session(ticket.id()).path("state").asString().equals("running"));
    awaitOutput(ticket, "ready");
    post(ticket, "/signal", "{\"signal\":\"USR1\"}");
    var caught = plane.follow(ticket, 0, "");
    assertThat(caught.text()).isEqualTo("ready\ngot\n");
    assertThat(caught.code()).isEqualTo(5);
  }

  private void awaitOutput(RealPlane.Ticket ticket, String text) {
    try (InputStream body = plane.attach(ticket, 0, "").body()) {
      var reader = new EventReader(body);
      while (!reader.next().orElseThrow().data().contains(text)) {
        // The next event.
      }
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  @Test
  @DisplayName(
      "behaviour 16: environment of the create is everywhere, the call's wins, no shell reads it")
  void environment() {
    assertThat(
            plane
                .run(
                    "{\"argv\":[\"sh\",\"-c\",\"echo \\\"$FROM_CREATE|$BOTH|$OWN\\\"\"],\"env\":{\"BOTH\":\"call\",\"OWN\":\"$HOME `id`\"}}")
                .text())
        .isEqualTo("a b'c|call|$HOME `id`\n");
    assertThat(
            plane
                .run("{\"argv\":[\"printenv\",\"FROM_CREATE\"],\"pty\":{\"cols\":80,\"rows\":24}}")
                .text())
        .isEqualTo("a b'c\r\n");
    assertThat(plane.run("{\"argv\":[\"echo\",\"$HOME\",\"a  b\",\"'\\\"\"]}").text())
        .isEqualTo("$HOME a  b '\"\n");
  }

  @Test
  @DisplayName("behaviour 17: missing directory, user and command are each their own error")
  void clearErrors() {
    for (var bad :
        List.of(
            List.of("\"cwd\":\"/nowhere\"", "workdir_not_found"),
            List.of("\"user\":\"nobody-here\"", "user_not_found"))) {
      var answer =
          plane.send(
              "POST",
              plane.controlUrl() + plane.sessions(),
              "{\"command\":\"touch /tmp/started\",\"start\":true," + bad.getFirst() + "}");
      assertThat(answer.statusCode()).isEqualTo(422);
      assertThat(answer.body()).contains(bad.getLast());
    }
    var missing =
        plane.send(
            "POST",
            plane.controlUrl() + plane.sessions(),
            "{\"argv\":[\"no-such-command\"],\"start\":true}");
    assertThat(missing.statusCode()).isEqualTo(422);
    assertThat(missing.body()).contains("command_not_found").contains("no-such-command");
    assertThat(plane.sh("test -e /tmp/started").code()).isEqualTo(1);
    var who = plane.run("{\"argv\":[\"id\"],\"user\":\"root\",\"cwd\":\"/etc\"}");
    assertThat(who.text()).contains("uid=0(root)");
    assertThat(plane.sh("id -un; pwd").text()).isEqualTo("user\n/home/user\n");
  }

  @Test
  @DisplayName("stdin is placed by offset: a retry doubles nothing, its end is told")
  void input() {
    var ticket = plane.session("{\"argv\":[\"cat\"],\"stdin\":true,\"start\":true}");
    post(ticket, "/stdin?offset=0", "hello ");
    post(ticket, "/stdin?offset=0", "hello ");
    post(ticket, "/stdin?offset=3", "lo world");
    var ahead =
        plane.send(
            HttpRequest.newBuilder(
                    URI.create(plane.dataUrl() + "/v1/attach/" + ticket.id() + "/stdin?offset=99"))
                .header("Authorization", "Bearer " + ticket.token())
                .POST(BodyPublishers.ofString("x")));
    assertThat(ahead.statusCode()).isEqualTo(409);
    post(ticket, "/stdin?offset=11&eof=true", "\n");
    var done = plane.follow(ticket, 0, "");
    assertThat(done.text()).isEqualTo("hello world\n");
    assertThat(done.code()).isZero();
  }

  @Test
  @DisplayName("behaviour 18: short commands leak nothing on either side")
  void noLeak() {
    int commands = Integer.getInteger("space.test.commands", 60);
    plane.sh("true");
    String before = guestHolds();
    int openBefore = hostDescriptors();
    for (int i = 0; i < commands; i++) {
      assertThat(plane.run("{\"argv\":[\"true\"]}").code()).isZero();
    }
    await().atMost(PATIENCE).untilAsserted(() -> assertThat(guestHolds()).isEqualTo(before));
    assertThat(hostDescriptors()).isLessThan(openBefore + 20);
  }

  /// Descriptors and children of PID 1, cgroups of sessions.
  private String guestHolds() {
    return plane
        .run(
            "{\"user\":\"root\",\"argv\":[\"sh\",\"-c\",\"ls /proc/1/fd | wc -l; ps --ppid 2 -p 2 --deselect | wc -l;"
                + " find /sys/fs/cgroup -type d | wc -l\"]}")
        .text();
  }

  private int hostDescriptors() {
    String[] names = new java.io.File("/proc/" + plane.daemon().pid() + "/fd").list();
    return names == null ? 0 : names.length;
  }

  @Test
  @DisplayName("metrics: what a sandbox uses, now and over time")
  void metrics() {
    plane.sh("dd if=/dev/zero of=/home/user/big bs=1M count=8 2>/dev/null; sync");
    JsonNode metrics = plane.call("GET", "/v1/sandboxes/" + plane.sandbox() + "/metrics", "");
    JsonNode now = metrics.path("now");
    assertThat(now.path("memory_total_bytes").asLong()).isBetween(300L << 20, 600L << 20);
    assertThat(now.path("memory_used_bytes").asLong()).isPositive();
    assertThat(now.path("disk_used_bytes").asLong()).isGreaterThan(8L << 20);
    await()
        .atMost(PATIENCE)
        .until(
            () ->
                plane
                        .call("GET", "/v1/sandboxes/" + plane.sandbox() + "/metrics?limit=2", "")
                        .path("samples")
                        .path(1)
                        .path("cpu_percent")
                        .asDouble(-1)
                    >= 0);
  }
}
