package dev.space.app;

import static dev.space.app.RealPlane.PATIENCE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.space.host.ProcessIdentity;
import dev.space.http.Json;
import dev.space.wire.EventReader;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/// Sessions of a real VM over time: through sleep and silence, and to those with the right token.
@Tag("vm")
@Tag("slow")
@Timeout(180)
@ExtendWith(RealPlane.Shared.class)
class SessionLifeVmTest {

  private final RealPlane plane;
  private int typed;

  SessionLifeVmTest(RealPlane plane) {
    this.plane = plane;
  }

  private HttpResponse<String> ask(RealPlane.Ticket ticket, String what, String body) {
    return plane.send(
        HttpRequest.newBuilder(URI.create(plane.dataUrl() + "/v1/attach/" + ticket.id() + what))
            .header("Authorization", "Bearer " + ticket.token())
            .header("Content-Type", "application/json")
            .POST(BodyPublishers.ofString(body)));
  }

  private void tell(RealPlane.Ticket ticket, String what, String body) {
    var answer = ask(ticket, what, body);
    assertThat(answer.statusCode()).as(answer.body()).isLessThan(300);
  }

  private int status(String url, String token) {
    return plane
        .send(HttpRequest.newBuilder(URI.create(url)).header("Authorization", "Bearer " + token))
        .statusCode();
  }

  /// Types into a terminal; every character is one byte.
  private void type(RealPlane.Ticket ticket, String text) {
    tell(ticket, "/stdin?offset=" + typed, text);
    typed += text.length();
  }

  /// What a terminal has shown so far, until it holds a text.
  private String shown(RealPlane.Ticket ticket, String text) {
    var all = new ByteArrayOutputStream();
    try (InputStream body = plane.attach(ticket, 0, "").body()) {
      var reader = new EventReader(body);
      while (!all.toString(StandardCharsets.UTF_8).contains(text)) {
        var event = reader.next().orElseThrow();
        assertThat(event.name()).as("before '%s' was shown: %s", text, all).isNotEqualTo("exit");
        if (event.name().equals("pty")) {
          all.writeBytes(RealPlane.bytes(Json.mapper().readTree(event.data())));
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return all.toString(StandardCharsets.UTF_8);
  }

  @Test
  @DisplayName("behaviours 9, 15, 19: a terminal sleeps and wakes with what runs in it")
  void terminalsSleep() {
    var shell =
        plane.session(
            "{\"argv\":[\"bash\",\"--norc\"],\"pty\":{\"cols\":91,\"rows\":31},\"start\":true,"
                + "\"env\":{\"PS1\":\"> \"}}");
    type(shell, "kept=here; stty size\n");
    shown(shell, "31 91");
    type(shell, "n=0; while :; do n=$((n+1)); echo tick-$n; sleep 0.2; done\n");
    shown(shell, "tick-3");
    for (int round = 1; round <= 2; round++) {
      plane.operate("suspend");
      // What is asked of a terminal that sleeps is refused and not lost in between.
      assertThat(ask(shell, "/resize", "{\"cols\":100,\"rows\":40}").statusCode()).isEqualTo(409);
      plane.operate("wake");
    }
    String all = shown(shell, "tick-9\r");
    for (int n = 1; n <= 9; n++) {
      assertThat(all.split("tick-" + n + "\r", -1)).as("tick %s, once", n).hasSize(2);
    }
    type(shell, "\u0003");
    tell(shell, "/resize", "{\"cols\":100,\"rows\":40}");
    type(shell, "echo $kept-again; stty size\n");
    assertThat(shown(shell, "40 100")).contains("here-again");
    type(shell, "exit 7\n");
    assertThat(plane.follow(shell, 0, "").code()).isEqualTo(7);
  }

  @Test
  @DisplayName("behaviour 8: a command that says nothing is not cut; signs of life come meanwhile")
  void silence() throws IOException {
    var ticket = plane.session("{\"command\":\"sleep 33; echo done\"}");
    var answer = plane.attach(ticket, 0, "");
    assertThat(answer.headers().firstValue("Cache-Control").orElse("")).contains("no-");
    assertThat(answer.headers().firstValue("X-Accel-Buffering")).contains("no");
    int signs = 0;
    boolean exited = false;
    try (var lines =
        new BufferedReader(new InputStreamReader(answer.body(), StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        signs += line.startsWith(":") ? 1 : 0;
        exited |= line.equals("event: exit");
      }
    }
    assertThat(signs).as("comments in 33 s, one each 15 s").isBetween(1, 4);
    assertThat(exited).isTrue();
  }

  @Test
  @DisplayName("behaviour 40: a token opens its session alone, and is nowhere to be read")
  void tokens() throws Exception {
    var one = plane.session("{\"argv\":[\"sleep\",\"600\"],\"start\":true}");
    var other = plane.session("{\"argv\":[\"sleep\",\"600\"],\"start\":true}");
    String at = plane.dataUrl() + "/v1/attach/";
    assertThat(ask(one, "/signal", "{\"signal\":\"CONT\"}").statusCode()).isLessThan(300);
    assertThat(status(at + one.id(), other.token())).isEqualTo(403);
    String token = one.token();
    for (String bad :
        List.of(
            token.substring(0, token.length() - 2),
            token + "x",
            token.substring(0, token.length() / 2)
                + (token.charAt(token.length() / 2) == 'a' ? 'b' : 'a')
                + token.substring(token.length() / 2 + 1),
            plane.key())) {
      assertThat(status(at + one.id(), bad)).isEqualTo(401);
    }
    // It is no key to anything else.
    assertThat(status(plane.controlUrl() + "/v1/sandboxes", token)).isEqualTo(401);
    assertThat(status(plane.controlUrl() + plane.sessions(), token)).isEqualTo(401);
    assertThat(status(plane.files("", "/etc/hostname"), token)).isEqualTo(401);
    assertThat(status(plane.port(80, "/"), token)).isEqualTo(401);

    plane.call("DELETE", plane.sessions() + "/" + one.id() + "/attach", "");
    assertThat(status(at + one.id(), token)).isEqualTo(403);
    var renewed = plane.call("POST", plane.sessions() + "/" + one.id() + "/attach", "");
    String fresh = renewed.path("attach_token").asString();
    var again = new RealPlane.Ticket(one.id(), one.url(), fresh);
    tell(again, "/signal", "{\"signal\":\"TERM\"}");
    assertThat(plane.follow(again, 0, "").exit().path("signal").asInt()).isEqualTo(15);

    String log = Files.readString(plane.data().resolve("serve.log"));
    String processes =
        ProcessIdentity.all().stream().map(ProcessIdentity::arguments).toList().toString();
    for (String secret : List.of(token, fresh, other.token(), plane.key())) {
      assertThat(log).doesNotContain(secret);
      assertThat(processes).doesNotContain(secret);
    }
    plane.call("DELETE", plane.sessions() + "/" + other.id(), "");
  }

  @Test
  @DisplayName("behaviour 14: what has ended takes no signal, size or input, and says so")
  void endedProcesses() {
    var pty =
        plane.session("{\"argv\":[\"true\"],\"pty\":{\"cols\":80,\"rows\":24},\"start\":true}");
    var piped = plane.session("{\"argv\":[\"true\"],\"stdin\":true,\"start\":true}");
    for (var ticket : List.of(pty, piped)) {
      assertThat(plane.follow(ticket, 0, "").code()).isZero();
      await()
          .atMost(PATIENCE)
          .until(
              () ->
                  plane
                      .call("GET", plane.sessions() + "/" + ticket.id(), "")
                      .path("state")
                      .asString()
                      .equals("exited"));
      for (String signal : List.of("TERM", "KILL")) {
        var refused = ask(ticket, "/signal", "{\"signal\":\"" + signal + "\"}");
        assertThat(refused.statusCode()).as(refused.body()).isEqualTo(409);
        assertThat(refused.body()).contains("illegal_state").contains("exited");
      }
      assertThat(ask(ticket, "/stdin?offset=0", "x").statusCode()).isEqualTo(409);
      // Ending what has ended is no error and changes nothing.
      var ended = plane.call("DELETE", plane.sessions() + "/" + ticket.id(), "");
      assertThat(ended.path("exit").path("code").asInt(-1)).isZero();
    }
    assertThat(ask(pty, "/resize", "{\"cols\":10,\"rows\":10}").statusCode()).isEqualTo(409);
  }
}
