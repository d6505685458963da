package dev.space.app;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.app.RealDaemon.Event;
import dev.space.app.RealDaemon.Session;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import tools.jackson.databind.JsonNode;

/// What a guest's own root can do to it: run out of memory, end its agent, take its link away.
@Tag("vm")
@Tag("slow")
@Timeout(240)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class GuestLossVmTest {

  /// Takes more memory than the guest has, page by page.
  private static final String HOG =
      "python3 -c 'b = []\nwhile True: b.append(bytearray(16 << 20))'";

  private RealDaemon daemon;

  @BeforeAll
  void start() throws Exception {
    daemon = RealDaemon.start(RealDaemon.prepare("loss"));
  }

  @AfterAll
  void stop() {
    daemon.close();
  }

  private Event exit(String id, String script) {
    List<Event> events = daemon.attach(daemon.session(id, script), 0, event -> false);
    assertThat(events).as("the stream of %s", script).isNotEmpty();
    return events.getLast();
  }

  @Test
  @DisplayName("behaviours 14, 28: who is killed for lack of memory is told so; the guest goes on")
  void outOfMemory() {
    String id = daemon.create();
    Session bystander = daemon.session(id, "echo up; sleep 600");
    daemon.attach(bystander, 0, event -> event.name().equals("stdout"));
    Event end = exit(id, "exec " + HOG);
    assertThat(end.name()).as(end.toString()).isEqualTo("exit");
    assertThat(end.data().path("signal").asInt()).as(end.toString()).isEqualTo(9);
    assertThat(end.data().path("signal_name").asString()).isEqualTo("SIGKILL");
    assertThat(end.data().has("code")).isFalse();
    assertThat(end.data().path("timed_out").asBoolean(false)).isFalse();
    assertThat(daemon.sh(id, "dmesg | grep -c 'Out of memory: Killed'")).isEqualTo("1\n");
    assertThat(daemon.state(id)).isEqualTo("running");
    JsonNode other = daemon.get(RealDaemon.path(id) + "/sessions/" + bystander.id()).body();
    assertThat(other.path("state").asString()).isEqualTo("running");
    // A shell whose command is killed tells it as a shell does.
    Event shell = exit(id, HOG + "; exit $?");
    assertThat(shell.data().path("code").asInt()).as(shell.toString()).isEqualTo(128 + 9);
    daemon.delete(id);
  }

  @Test
  @DisplayName("behaviour 28: a guest set to panic when it is out of memory has failed, with why")
  void panicOutOfMemory() {
    String id = daemon.create();
    daemon.sh(id, "echo 1 > /proc/sys/vm/panic_on_oom");
    JsonNode sandbox = ends(id, HOG);
    assertThat(sandbox.path("state").asString()).isEqualTo("failed");
    assertThat(sandbox.toString()).contains("panic").contains("Out of memory");
    daemon.delete(id);
  }

  @Test
  @DisplayName(
      "behaviour 28: signals to the agent change nothing; its crash is told within seconds")
  void agent() {
    String id = daemon.create();
    daemon.sh(id, "for s in KILL STOP TERM INT HUP QUIT USR1; do kill -$s 1; done");
    assertThat(daemon.sh(id, "echo still here")).isEqualTo("still here\n");
    assertThat(daemon.state(id)).isEqualTo("running");
    JsonNode sandbox = ends(id, "kill -ABRT 1");
    assertThat(sandbox.path("state").asString()).isEqualTo("failed");
    assertThat(sandbox.toString()).contains("panic");
    daemon.delete(id);
  }

  @Test
  @DisplayName("behaviours 4, 28: a living VM whose link is gone is over within seconds, with why")
  void link() {
    String id = daemon.create();
    JsonNode sandbox =
        ends(
            id,
            "cd /sys/bus/virtio/drivers/virtio_console && for d in virtio*; do echo $d > unbind; done");
    assertThat(sandbox.path("state").asString()).isIn("failed", "stopped");
    assertThat(sandbox.path("cause").toString()).containsAnyOf("link", "port");
    assertThat(daemon.vms()).doesNotContainKey(id);
    daemon.delete(id);
  }

  /// Runs a script that ends the guest; a stream that is open then ends with an error.
  private JsonNode ends(String id, String script) {
    Session open = daemon.session(id, "echo up; sleep 600");
    daemon.attach(open, 0, event -> event.name().equals("stdout"));
    CompletableFuture<List<Event>> stream =
        CompletableFuture.supplyAsync(() -> daemon.attach(open, 0, event -> false));
    Session killer = daemon.session(id, "sleep 1; " + script);
    daemon.attach(killer, 0, event -> true);
    long start = System.nanoTime();
    org.awaitility.Awaitility.await()
        .atMost(Duration.ofSeconds(60))
        .pollInterval(Duration.ofMillis(50))
        .until(() -> !daemon.state(id).equals("running"));
    double seconds = (System.nanoTime() - start) / 1e9;
    JsonNode sandbox = daemon.get(RealDaemon.path(id)).body();
    System.out.printf("%s: over after %.1f s: %s%n", script, seconds, sandbox.path("cause"));
    Event last = stream.join().getLast();
    assertThat(last.name()).as("the end of the stream: %s", last).isEqualTo("error");
    assertThat(last.data().path("code").asString()).isEqualTo("sandbox_died");
    return sandbox;
  }
}
