package dev.space.app;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.space.app.RealDaemon.Answer;
import dev.space.app.RealDaemon.Event;
import dev.space.app.RealDaemon.Session;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import tools.jackson.databind.JsonNode;

/// Lives of sandboxes on real VMs, through the API of a real daemon.
@Tag("vm")
@Tag("slow")
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class LifecycleVmTest {

  /// Counts on, in memory alone.
  private static final String COUNT = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done";

  private RealDaemon daemon;

  @BeforeAll
  void start() throws Exception {
    daemon = RealDaemon.start(prepare("life"));
  }

  /// A data directory for the daemon; a subclass configures another monitor in it.
  Path prepare(String name) throws java.io.IOException {
    return RealDaemon.prepare(name);
  }

  @AfterAll
  void stop() {
    daemon.close();
  }

  /// The numbers a counting session wrote: all of them, from the first, without a gap.
  private static long counted(List<Event> events) {
    List<Long> numbers = RealDaemon.text(events).lines().map(Long::parseLong).toList();
    for (int i = 0; i < numbers.size(); i++) {
      assertThat(numbers.get(i)).isEqualTo(i + 1L);
    }
    return numbers.size();
  }

  private long countTo(Session session, long atLeast) {
    long[] lines = new long[1];
    return counted(
        daemon.attach(
            session,
            0,
            event -> {
              if (event.name().equals("stdout")) {
                lines[0] += event.data().path("text").asString().lines().count();
              }
              return lines[0] >= atLeast;
            }));
  }

  @Test
  @DisplayName("behaviour 19: five times asleep: files, processes, open files and sessions go on")
  void sleepingChangesNothing() {
    String id = daemon.create();
    Session counter = daemon.session(id, COUNT);
    daemon.session(id, "exec 7>/root/open; while :; do date +%s >&7; sleep 0.2; done");
    long last = countTo(counter, 3);
    for (int round = 1; round <= 5; round++) {
      daemon.sh(id, "echo round " + round + " >> /root/rounds");
      daemon.act(id, "suspend");
      assertThat(daemon.vms()).doesNotContainKey(id);
      daemon.act(id, "wake");
      assertThat(daemon.sh(id, "cat /root/rounds").lines()).hasSize(round);
      long now = countTo(counter, last + 3);
      assertThat(now).isGreaterThan(last);
      last = now;
    }
    assertThat(
            daemon.sh(
                id,
                "a=$(wc -l < /root/open); sleep 1; b=$(wc -l < /root/open);"
                    + " [ $b -gt $a ] && echo on"))
        .isEqualTo("on\n");
    daemon.act(id, "pause");
    assertThat(daemon.state(id)).isEqualTo("paused");
    daemon.act(id, "wake");
    assertThat(countTo(counter, last + 3)).isGreaterThan(last);
    daemon.delete(id);
  }

  @Test
  @DisplayName("behaviour 20: suspension by timeout and by idleness keeps the last write")
  void timersSuspendLikeCalls() {
    String timed =
        daemon.create("\"timeout\":\"4s\",\"on_timeout\":\"suspend\",\"auto_wake\":true");
    String idle =
        daemon.create("\"idle_timeout\":\"2s\",\"on_timeout\":\"suspend\",\"auto_wake\":true");
    daemon.sh(timed, "echo last > /root/f");
    daemon.sh(idle, "echo last > /root/f");
    daemon.awaitState(timed, "suspended", Duration.ofSeconds(20));
    daemon.awaitState(idle, "suspended", Duration.ofSeconds(20));
    assertThat(daemon.sh(timed, "cat /root/f")).isEqualTo("last\n");
    assertThat(daemon.sh(idle, "cat /root/f")).isEqualTo("last\n");
    daemon.delete(timed);
    daemon.delete(idle);
  }

  @Test
  @DisplayName(
      "idle_timeout doesn't count while a session runs with a reader; auto_wake serves files")
  void useKeepsAwakeAndFilesWake() {
    String id =
        daemon.create("\"idle_timeout\":\"2s\",\"on_timeout\":\"suspend\",\"auto_wake\":true");
    Session session = daemon.session(id, "sleep 5; echo done > /tmp/f");
    List<Event> events = daemon.attach(session, 0, event -> false);
    assertThat(events.getLast().name()).isEqualTo("exit");
    daemon.awaitState(id, "suspended", Duration.ofSeconds(20));
    String files =
        session.url().replaceAll("/v1/attach/.*", "")
            + RealDaemon.path(id)
            + "/files/stat?path=/tmp/f";
    assertThat(daemon.get(files).status()).isEqualTo(200);
    assertThat(daemon.state(id)).isEqualTo("running");
    daemon.delete(id);
  }

  @Test
  @DisplayName("behaviour 21: calls that meet are serialised and each gets a true answer")
  void callsThatMeetAreSerialised() {
    Answer create = daemon.post("/v1/sandboxes", RealDaemon.request());
    String id = create.body().path("sandbox_id").asString();
    Answer suspend = daemon.ask(id, "suspend");
    Answer wake = daemon.ask(id, "wake");
    Answer again = daemon.ask(id, "wake");
    daemon.done(create);
    daemon.done(suspend);
    daemon.done(wake);
    daemon.done(again);
    assertThat(daemon.state(id)).isEqualTo("running");
    Answer sleep = daemon.ask(id, "suspend");
    Answer delete = daemon.call("DELETE", RealDaemon.path(id), "", Map.of());
    daemon.done(delete);
    assertThat(daemon.ended(sleep).path("state").asString())
        .isIn("succeeded", "cancelled", "failed");
    assertThat(daemon.state(id)).isEqualTo("absent");
    assertThat(daemon.vms()).doesNotContainKey(id);
  }

  @Test
  @DisplayName("behaviour 22: a wake that fails leaves what was saved, and succeeds when it can")
  void failedWakeKeepsTheSavedState() throws Exception {
    String id = daemon.create();
    daemon.sh(id, "echo kept > /root/f");
    daemon.act(id, "suspend");
    Path state = daemon.dir().resolve("vms").resolve(id).resolve("saved/changes");
    Path away = state.resolveSibling("elsewhere");
    Files.move(state, away);
    JsonNode failed = daemon.ended(daemon.ask(id, "wake"));
    assertThat(failed.path("state").asString()).isEqualTo("failed");
    assertThat(failed.path("error").path("code").asString()).isEqualTo("snapshot_damaged");
    assertThat(daemon.state(id)).isEqualTo("suspended");
    Files.move(away, state);
    daemon.act(id, "wake");
    assertThat(daemon.sh(id, "cat /root/f")).isEqualTo("kept\n");
    daemon.delete(id);
  }

  @Test
  @DisplayName("behaviour 22: a suspend that can't be saved rolls back to running")
  void failedSuspendRollsBack() throws Exception {
    String id = daemon.create();
    Session counter = daemon.session(id, COUNT);
    // What stands where the saved state is made: nothing can be renamed onto it.
    Path saved = daemon.dir().resolve("vms").resolve(id).resolve("saved");
    Files.createDirectory(saved);
    Files.createFile(saved.resolve("in-the-way"));
    JsonNode failed = daemon.ended(daemon.ask(id, "suspend"));
    assertThat(failed.path("state").asString()).isEqualTo("failed");
    assertThat(daemon.state(id)).isEqualTo("running");
    assertThat(countTo(counter, 10)).isGreaterThanOrEqualTo(10);
    daemon.delete(id);
  }

  private static final String NATURE =
      "cat /etc/machine-id /proc/sys/kernel/random/boot_id; hostname;"
          + " head -c 32 /dev/urandom | sha256sum; cat /proc/sys/kernel/random/uuid";

  @Test
  @DisplayName("behaviour 23: after a restore the clock is right and clones share nothing random")
  void clonesAreTheirOwn() {
    String id = daemon.create();
    String snapshot =
        daemon
            .done(daemon.post(RealDaemon.path(id) + "/snapshots", ""))
            .path("result_ids")
            .get(0)
            .asString();
    List<String> copies = new ArrayList<>(List.of(id));
    daemon
        .done(daemon.post(RealDaemon.path(id) + "/fork", "{\"count\":2}"))
        .path("result_ids")
        .forEach(copy -> copies.add(copy.asString()));
    for (int i = 0; i < 2; i++) {
      String body = "{\"snapshot_id\":\"" + snapshot + "\"}";
      copies.add(daemon.done(daemon.post("/v1/sandboxes", body)).path("sandbox_id").asString());
    }
    daemon.act(id, "suspend");
    daemon.act(id, "wake");
    Set<String> seen = new HashSet<>();
    for (String copy : copies) {
      List<String> lines = daemon.sh(copy, NATURE).lines().toList();
      assertThat(lines).hasSize(5);
      assertThat(lines.get(2)).isEqualTo(copy);
      for (String line : lines) {
        assertThat(seen.add(line)).as("%s of %s is its own", line, copy).isTrue();
      }
      assertThat(clockError(copy)).isCloseTo(0, within(1.0));
    }
    copies.forEach(daemon::delete);
    assertThat(daemon.call("DELETE", "/v1/snapshots/" + snapshot, "", Map.of()).status())
        .isLessThan(300);
  }

  /// How far the guest's clock is from the host's, in seconds, given when the answer was made.
  private double clockError(String id) {
    double before = Instant.now().toEpochMilli() / 1000.0;
    double guest = Double.parseDouble(daemon.sh(id, "date +%s.%N").strip());
    double after = Instant.now().toEpochMilli() / 1000.0;
    return guest < before ? guest - before : guest > after ? guest - after : 0;
  }

  @Test
  @DisplayName("behaviour 24: a delete stays, wakes nothing, and twice is no error")
  void deletesStay() {
    String paused = daemon.create();
    String suspended = daemon.create();
    daemon.act(paused, "pause");
    daemon.act(suspended, "suspend");
    for (String id : List.of(paused, suspended)) {
      Answer first = daemon.call("DELETE", RealDaemon.path(id), "", Map.of());
      daemon.done(first);
      assertThat(daemon.call("DELETE", RealDaemon.path(id), "", Map.of()).status()).isIn(200, 202);
      assertThat(daemon.get(RealDaemon.path(id)).status()).isEqualTo(404);
      assertThat(daemon.ask(id, "wake").status()).isEqualTo(404);
      assertThat(daemon.vms()).doesNotContainKey(id);
      assertThat(daemon.names("vms")).doesNotContain(id);
    }
  }

  @Test
  @DisplayName("behaviour 25: a create that is repeated with its key makes one sandbox")
  void repeatedCreatesMakeOne() {
    Map<String, String> key = Map.of("Idempotency-Key", "once-" + System.nanoTime());
    List<Answer> answers =
        IntStream.range(0, 4)
            .mapToObj(
                i ->
                    CompletableFuture.supplyAsync(
                        () -> daemon.call("POST", "/v1/sandboxes", RealDaemon.request(), key)))
            .toList()
            .stream()
            .map(CompletableFuture::join)
            .toList();
    Set<String> ids = new HashSet<>();
    answers.forEach(answer -> ids.add(daemon.done(answer).path("sandbox_id").asString()));
    assertThat(ids).hasSize(1);
    ids.forEach(daemon::delete);
  }

  @Test
  @DisplayName("behaviour 25: a create that is deleted half-way leaves nothing")
  void cancelledCreatesLeaveNothing() {
    Answer create = daemon.post("/v1/sandboxes", RealDaemon.request());
    String id = create.body().path("sandbox_id").asString();
    daemon.delete(id);
    assertThat(daemon.ended(create).path("state").asString()).isIn("cancelled", "succeeded");
    assertThat(daemon.vms()).doesNotContainKey(id);
    assertThat(daemon.names("vms")).doesNotContain(id);
  }

  private void ends(String how, String id, String state, String cause, Runnable end) {
    Session session = daemon.session(id, "echo up; sleep 600");
    CompletableFuture<List<Event>> stream =
        CompletableFuture.supplyAsync(() -> daemon.attach(session, 0, event -> false));
    assertThat(daemon.attach(session, 0, event -> event.name().equals("stdout"))).isNotEmpty();
    long start = System.nanoTime();
    end.run();
    daemon.awaitState(id, state, Duration.ofSeconds(20));
    double seconds = (System.nanoTime() - start) / 1e9;
    JsonNode sandbox = daemon.get(RealDaemon.path(id)).body();
    System.out.printf("%s: noticed after %.1f s: %s%n", how, seconds, sandbox.path("cause"));
    assertThat(seconds).as(how).isLessThan(5);
    assertThat(sandbox.toString()).contains(cause);
    assertThat(stream.join().getLast().name())
        .as("the end of the stream: " + how)
        .isEqualTo("error");
    daemon.delete(id);
  }

  @Test
  @DisplayName(
      "behaviours 4, 28: panic, power-off, loss of the VM or its agent are told in seconds")
  void deathsAreNoticed() {
    String panics = daemon.create();
    ends(
        "panic",
        panics,
        "failed",
        "panic",
        () -> daemon.session(panics, "echo c > /proc/sysrq-trigger"));
    String off = daemon.create();
    ends(
        "power-off",
        off,
        "stopped",
        "powered",
        () -> daemon.session(off, "echo o > /proc/sysrq-trigger"));
    String killed = daemon.create();
    ends("kill -9 of QEMU", killed, "failed", "VM process ended", () -> vm(killed).kill());
    String paused = daemon.create();
    daemon.act(paused, "pause");
    long start = System.nanoTime();
    vm(paused).kill();
    daemon.awaitState(paused, "failed", Duration.ofSeconds(5));
    System.out.printf("kill -9 while paused: %.1f s%n", (System.nanoTime() - start) / 1e9);
    daemon.delete(paused);
  }

  private dev.space.host.ProcessIdentity vm(String id) {
    return java.util.Objects.requireNonNull(daemon.vms().get(id), "a VM of " + id);
  }

  @Test
  @DisplayName("behaviour 29: a timeout runs out to the second; extending it works while it runs")
  void timeoutsAreExact() {
    String id = daemon.create("\"timeout\":\"4s\"");
    String longer = daemon.create("\"timeout\":\"4s\"");
    Answer extended =
        daemon.call("PATCH", RealDaemon.path(longer), "{\"timeout\":\"1h\"}", Map.of());
    assertThat(extended.status()).isEqualTo(200);
    Instant due =
        Instant.parse(daemon.get(RealDaemon.path(id)).body().path("expires_at").asString());
    Awaitility.await()
        .atMost(Duration.ofSeconds(20))
        .pollInterval(Duration.ofMillis(20))
        .until(() -> !daemon.state(id).equals("running"));
    assertThat(Duration.between(due, Instant.now()).toMillis() / 1000.0).isBetween(0.0, 1.0);
    assertThat(daemon.state(longer)).isEqualTo("running");
    daemon.delete(longer);
  }

  @Test
  @DisplayName("an untouched clone is suspended into a few MiB")
  void untouchedClonesAreSmallAsleep() throws Exception {
    String id = daemon.create();
    daemon.act(id, "suspend");
    Path saved = daemon.dir().resolve("vms").resolve(id).resolve("saved");
    long bytes = Files.size(saved.resolve("changes")) + Files.size(saved.resolve("state"));
    System.out.printf("a suspended untouched clone of 256 MiB: %.1f MiB%n", bytes / 1048576.0);
    assertThat(bytes).isLessThan(16L << 20);
    daemon.delete(id);
  }
}
