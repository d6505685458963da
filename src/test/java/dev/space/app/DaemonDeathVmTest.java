package dev.space.app;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.app.RealDaemon.Answer;
import dev.space.app.RealDaemon.Event;
import dev.space.app.RealDaemon.Session;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

/// Ends and starts of a real daemon around real VMs.
@Tag("vm")
@Tag("slow")
class DaemonDeathVmTest {

  private static final String COUNT = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done";

  /// What a configuration file says of the monitor.
  String monitor() {
    return "";
  }

  /// A data directory for daemons; a subclass configures another monitor in it.
  Path prepare(String name) throws IOException {
    return RealDaemon.prepare(name);
  }

  @Test
  @DisplayName(
      "behaviours 9, 26, 27: kill -9: same ids, sessions, output and timers; nothing left over")
  void aKilledDaemonLosesNothing() throws Exception {
    Path dir = prepare("killed");
    String running;
    String paused;
    String suspended;
    String expiring;
    Session counter;
    long seen;
    try (RealDaemon first = RealDaemon.start(dir)) {
      running = first.create();
      paused = first.create();
      suspended = first.create();
      counter = first.session(running, COUNT);
      first.sh(suspended, "echo kept > /root/f");
      first.act(paused, "pause");
      first.act(suspended, "suspend");
      expiring = first.create("\"timeout\":\"6s\"");
      seen = first.attach(counter, 0, event -> event.seq() >= 5).getLast().seq();
      // Under way when it dies.
      first.post("/v1/sandboxes", RealDaemon.request());
      first.kill();
      assertThat(first.vms().keySet()).contains(running, paused, expiring);
      try (RealDaemon second = RealDaemon.start(dir)) {
        assertThat(second.state(running)).isEqualTo("running");
        assertThat(second.state(paused)).isEqualTo("paused");
        assertThat(second.state(suspended)).isEqualTo("suspended");
        List<Event> later =
            second.attach(second.again(running, counter), seen, event -> event.seq() >= seen + 20);
        for (int i = 0; i < later.size(); i++) {
          assertThat(later.get(i).seq()).isEqualTo(seen + 1 + i);
        }
        second.awaitState(expiring, "absent", Duration.ofSeconds(15));
        second.act(paused, "wake");
        second.act(suspended, "wake");
        assertThat(second.sh(suspended, "cat /root/f")).isEqualTo("kept\n");
        Awaitility.await()
            .atMost(Duration.ofSeconds(20))
            .until(() -> second.vms().keySet().equals(running(second)));
        assertThat(second.names("vms")).isEqualTo(running(second));
        second.sandboxes().forEach(second::delete);
        assertThat(second.vms()).isEmpty();
        assertThat(second.names("vms")).isEmpty();
      }
    }
  }

  private static java.util.Set<String> running(RealDaemon daemon) {
    var ids = new java.util.TreeSet<String>();
    for (String id : daemon.sandboxes()) {
      if (daemon.state(id).equals("running")) {
        ids.add(id);
      }
    }
    return ids;
  }

  @Test
  @DisplayName(
      "behaviour 47: SIGTERM keeps sandboxes or suspends them, tells streams, exits cleanly")
  void aStopDoesAsConfigured() throws Exception {
    Path dir = prepare("stopped");
    String id;
    Session counter;
    try (RealDaemon first = RealDaemon.start(dir)) {
      id = first.create();
      counter = first.session(id, COUNT);
      CompletableFuture<List<Event>> stream =
          CompletableFuture.supplyAsync(() -> first.attach(counter, 0, event -> false));
      first.attach(counter, 0, event -> event.name().equals("stdout"));
      assertThat(first.terminate()).isIn(0, 143);
      Event last = stream.join().getLast();
      assertThat(last.name()).isEqualTo("error");
      assertThat(last.data().path("code").asString()).isEqualTo("shutting_down");
      assertThat(first.vms()).containsOnlyKeys(id);
      try (RealDaemon second = RealDaemon.start(dir, "on_stop=suspend")) {
        assertThat(second.state(id)).isEqualTo("running");
        assertThat(second.terminate()).isIn(0, 143);
        assertThat(second.vms()).isEmpty();
        try (RealDaemon third = RealDaemon.start(dir)) {
          assertThat(third.state(id)).isEqualTo("suspended");
          third.act(id, "wake");
          List<Event> events =
              third.attach(third.again(id, counter), 0, event -> event.seq() >= 60);
          assertThat(events.getLast().seq()).isEqualTo(60);
          third.delete(id);
          assertThat(third.vms()).isEmpty();
        }
      }
    }
    assertThat(RealDaemon.log(dir)).doesNotContain("ERROR");
  }

  @Test
  @DisplayName("a create takes a warm VM; a moved tag re-targets its pool; a restart sweeps them")
  void warmPoolsFollowTheirTag() throws Exception {
    Path dir = prepare("warm");
    Files.writeString(dir.resolve("config.yaml"), monitor() + "warm: {small: 1, unknown: 1}\n");
    Path recipe = Files.createDirectories(dir.resolve("recipe"));
    try (RealDaemon daemon = RealDaemon.start(dir)) {
      String one = build(daemon, recipe, "one");
      Awaitility.await().atMost(Duration.ofSeconds(60)).until(() -> warm(daemon) == 1);
      JsonNode made = daemon.done(daemon.post("/v1/sandboxes", "{\"template\":\"small\"}"));
      String id = made.path("sandbox_id").asString();
      assertThat(daemon.sh(id, "cat /which; hostname")).isEqualTo("one\n" + id + "\n");
      assertThat(daemon.vms().keySet()).anyMatch(name -> name.startsWith("warm-"));
      daemon.delete(id);
      String two = build(daemon, recipe, "two");
      assertThat(two).isNotEqualTo(one);
      Awaitility.await()
          .atMost(Duration.ofSeconds(60))
          .until(() -> warm(daemon) == 1 && daemon.vms().size() == 1);
      String next =
          daemon
              .done(daemon.post("/v1/sandboxes", "{\"template\":\"small\"}"))
              .path("sandbox_id")
              .asString();
      assertThat(daemon.sh(next, "cat /which")).isEqualTo("two\n");
      daemon.kill();
      Files.writeString(dir.resolve("config.yaml"), monitor() + "warm: {}\n");
      try (RealDaemon second = RealDaemon.start(dir)) {
        assertThat(second.state(next)).isEqualTo("running");
        assertThat(second.vms()).hasSize(1);
        second.delete(next);
        assertThat(second.names("vms")).isEmpty();
      }
    }
  }

  private static long warm(RealDaemon daemon) {
    return daemon.vms().keySet().stream().filter(name -> name.startsWith("warm-")).count();
  }

  private static String build(RealDaemon daemon, Path recipe, String which) throws Exception {
    Files.writeString(
        recipe.resolve("template.yaml"),
        """
        name: small
        from: base:latest
        run: ["echo %s > /which"]
        resources: {vcpus: 1, memory_mib: 256, disk_mib: 256}
        """
            .formatted(which));
    Path tar = recipe.resolveSibling("recipe.tar");
    new ProcessBuilder("tar", "-cf", tar.toString(), "-C", recipe.toString(), "template.yaml")
        .start()
        .waitFor();
    JsonNode built = daemon.done(daemon.upload("/v1/templates?tag=small", tar));
    return built.path("result_ids").get(0).asString();
  }

  @Test
  @DisplayName("limits: what doesn't fit is refused with the figures, and nothing is left of it")
  void admissionSaysWhatIsLacking() throws Exception {
    Path dir = prepare("limits");
    try (RealDaemon daemon =
        RealDaemon.start(dir, "limits.memory_mib=700", "limits.memory_overcommit=1")) {
      String one = daemon.create();
      String two = daemon.create();
      Answer third = daemon.post("/v1/sandboxes", RealDaemon.request());
      JsonNode failed = daemon.ended(third);
      assertThat(failed.path("state").asString()).isEqualTo("failed");
      assertThat(failed.path("error").path("code").asString()).isEqualTo("capacity");
      assertThat(failed.path("error").toString()).contains("512 of 700 MiB");
      assertThat(daemon.vms()).containsOnlyKeys(one, two);
      daemon.act(two, "suspend");
      String fits = daemon.create();
      JsonNode wake = daemon.ended(daemon.ask(two, "wake"));
      assertThat(wake.path("error").path("code").asString()).isEqualTo("capacity");
      assertThat(daemon.state(two)).isEqualTo("suspended");
      daemon.delete(fits);
      daemon.act(two, "wake");
      daemon.delete(one);
      daemon.delete(two);
      assertThat(daemon.names("vms")).isEmpty();
    }
  }

  @Test
  @DisplayName("behaviour 45: a machine that lacks something is told all of it at once")
  void lacksAreListedTogether() throws Exception {
    Path dir = Files.createTempDirectory("space-lack-");
    try {
      Process process = RealDaemon.command(dir, "boot.agent=/nowhere/agent").start();
      assertThat(process.waitFor()).isEqualTo(1);
      assertThat(RealDaemon.log(dir))
          .contains("kernel")
          .contains("template")
          .contains("space setup");
    } finally {
      RealDaemon.remove(dir);
    }
  }

  @Test
  @DisplayName(
      "a daemon that dies while a timer runs ends what was due meanwhile at its next start")
  void timersSurvive() throws Exception {
    Path dir = prepare("timers");
    String id;
    try (RealDaemon first = RealDaemon.start(dir)) {
      id = first.create("\"timeout\":\"2s\",\"on_timeout\":\"suspend\"");
      first.kill();
      Instant due = Instant.now().plusSeconds(3);
      Awaitility.await().atMost(Duration.ofSeconds(10)).until(() -> Instant.now().isAfter(due));
      try (RealDaemon second = RealDaemon.start(dir)) {
        second.awaitState(id, "suspended", Duration.ofSeconds(15));
        assertThat(second.vms()).isEmpty();
        second.delete(id);
      }
    }
  }
}
