package dev.space.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.space.cli.LocalService.Done;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/// Lives of sandboxes by the command line, against a whole service in this process without VMs.
@Timeout(60)
class LifecycleCommandsTest {

  @TempDir static Path dir;

  @SuppressWarnings("NullAway") // Set before all tests.
  private static LocalService service;

  @BeforeAll
  static void start() {
    service = LocalService.start(dir, Map.of("limits.memory_mib", "4096"));
  }

  @AfterAll
  static void stop() {
    service.close();
  }

  @AfterEach
  void empty() {
    space("sandbox", "ls", "-q").ok().lines().forEach(id -> space("sandbox", "rm", id).ok());
    space("prune", "--all").ok();
  }

  private static Done space(String... args) {
    return service.space(args);
  }

  private static String create(String... more) {
    String[] words = new String[more.length + 2];
    words[0] = "sandbox";
    words[1] = "create";
    System.arraycopy(more, 0, words, 2, more.length);
    return space(words).ok();
  }

  private static JsonNode json(String... args) {
    String[] words = java.util.Arrays.copyOf(args, args.length + 2);
    words[args.length] = "-o";
    words[args.length + 1] = "json";
    return Json.read(space(words).ok());
  }

  private static String state(String id) {
    return json("sandbox", "get", id).path("state").asString();
  }

  @Test
  void pauseSuspendAndWake() {
    String id = create();
    space("exec", id, "--", "sh", "-c", "echo kept > /tmp/f").ok();
    for (String verb : List.of("pause", "suspend")) {
      assertThat(space("sandbox", verb, id).ok()).isEqualTo(id);
      assertThat(state(id)).isEqualTo(verb.equals("pause") ? "paused" : "suspended");
      Done asleep = space("exec", id, "--", "true");
      assertThat(asleep.status()).isEqualTo(ExitStatus.INFRASTRUCTURE);
      assertThat(asleep.err()).contains("wake");
      assertThat(space("sandbox", "wake", id).ok()).isEqualTo(id);
      assertThat(space("exec", id, "--", "cat", "/tmp/f").ok()).isEqualTo("kept");
    }
    assertThat(json("sandbox", "ls", "--state", "running").findValuesAsString("id")).contains(id);
    assertThat(space("sandbox", "ls", "--state", "paused", "-q").ok()).isEmpty();
    Done nobody = space("sandbox", "pause", "nosuchsandboxnosuch0");
    assertThat(nobody.status()).isEqualTo(ExitStatus.FAILURE);
    assertThat(nobody.err()).contains("no sandbox has this id");
  }

  @Test
  void forksAndSnapshotsAreCopies() {
    String id = create();
    space("exec", id, "--", "sh", "-c", "echo kept > /tmp/f").ok();
    List<String> copies = space("sandbox", "fork", id, "-n", "2").ok().lines().toList();
    assertThat(copies).hasSize(2).doesNotHaveDuplicates().doesNotContain(id);
    for (String copy : copies) {
      assertThat(space("exec", copy, "--", "cat", "/tmp/f").ok()).isEqualTo("kept");
      assertThat(space("exec", copy, "--", "hostname").ok()).isEqualTo(copy);
    }

    String snapshot = space("sandbox", "snapshot", id, "--name", "mine").ok();
    JsonNode listed = json("snapshot", "ls", "--sandbox", id);
    assertThat(listed.path(0).path("id").asString()).isEqualTo(snapshot);
    assertThat(listed.path(0).path("name").asString()).isEqualTo("mine");
    assertThat(json("snapshot", "ls", "--sandbox", copies.getFirst())).isEmpty();
    assertThat(space("snapshot", "ls").ok()).contains("ID").contains(snapshot).contains("mine");
    String made = create("--snapshot", snapshot);
    assertThat(space("exec", made, "--", "cat", "/tmp/f").ok()).isEqualTo("kept");
    Done inUse = space("prune", "--all");
    assertThat(inUse.ok()).doesNotContain(snapshot);
    assertThat(inUse.err()).contains("kept", snapshot, "in use");
    assertThat(space("snapshot", "rm", snapshot).err()).contains("in use");
    space("sandbox", "rm", made).ok();
    assertThat(space("snapshot", "rm", snapshot).ok()).isEqualTo(snapshot);
    assertThat(json("snapshot", "ls")).isEmpty();
    Done again = space("sandbox", "create", "--snapshot", snapshot);
    assertThat(again.status()).isEqualTo(ExitStatus.FAILURE);
    assertThat(again.err()).contains("no snapshot has this id");
    assertThat(space("sandbox", "fork", id, "-n", "0").status()).isEqualTo(ExitStatus.FAILURE);
  }

  @Test
  void timeIsExtendedAndTakenAway() {
    String id = create("--timeout", "1m");
    Instant end = Instant.parse(space("sandbox", "extend", id, "2h").ok());
    assertThat(Duration.between(Instant.now(), end))
        .isBetween(Duration.ofMinutes(118), Duration.ofMinutes(121));
    assertThat(json("sandbox", "get", id).path("expires_at").asString()).isEqualTo(end.toString());
    space("sandbox", "extend", id, "0").ok();
    assertThat(json("sandbox", "get", id).has("expires_at")).isFalse();
    assertThat(space("sandbox", "extend", id, "soon").status()).isEqualTo(ExitStatus.USAGE);
  }

  @Test
  void topShowsWhatIsUsed() {
    String id = create();
    String other = create();
    assertThat(space("sandbox", "top").ok()).contains("CPU %", "MEMORY", id, other, "MiB");
    JsonNode one = json("sandbox", "top", id);
    assertThat(one).hasSize(1);
    assertThat(one.path(0).path("memory_total_bytes").asLong()).isPositive();
    space("sandbox", "suspend", other).ok();
    assertThat(space("sandbox", "top").ok()).contains(id).doesNotContain(other);
  }

  @Test
  void operationsAreShownAndWaitedFor() {
    String accepted = space("sandbox", "create", "--no-wait").ok();
    JsonNode ended = json("ops", "wait", accepted);
    assertThat(ended.path("state").asString()).isEqualTo("succeeded");
    assertThat(ended.path("kind").asString()).isEqualTo("create");
    assertThat(json("ops", "get", accepted)).isEqualTo(ended);
    String sandbox = ended.path("sandbox_id").asString();
    assertThat(json("ops", "ls", "--sandbox", sandbox).findValuesAsString("id"))
        .containsExactly(accepted);

    String tooLarge = space("sandbox", "create", "--memory", "8192", "--no-wait").ok();
    Done failed = space("ops", "wait", tooLarge);
    assertThat(failed.status()).isEqualTo(ExitStatus.FAILURE);
    assertThat(failed.err()).contains("8192 MiB more are asked for");
    assertThat(json("ops", "get", tooLarge).path("error").path("code").asString())
        .isEqualTo("capacity");
    assertThat(space("ops", "get", "nosuchoperationnosu0").status()).isEqualTo(ExitStatus.FAILURE);
  }

  @Test
  void pruneTakesWhatIsOver() {
    String running = create();
    String asleep = create();
    String off = create();
    space("sandbox", "suspend", asleep).ok();
    String snapshot = space("sandbox", "snapshot", running).ok();
    space("exec", off, "--", "poweroff");
    await().until(() -> state(off).equals("stopped"));

    assertThat(json("prune", "--dry-run").findValuesAsString("id")).containsExactly(off);
    assertThat(state(off)).isEqualTo("stopped");
    assertThat(space("prune").ok()).contains(off).doesNotContain(asleep, running, snapshot);
    await().until(() -> space("sandbox", "get", off).status() == ExitStatus.FAILURE);
    assertThat(json("prune", "--all").findValuesAsString("id"))
        .containsExactlyInAnyOrder(asleep, snapshot);
    await().until(() -> space("sandbox", "ls", "-q").ok().equals(running));
    assertThat(json("prune")).isEmpty();
  }

  @Test
  void eventsAreFollowed() {
    var out = new ByteArrayOutputStream();
    Thread follower =
        Thread.ofVirtual()
            .start(() -> service.follow(out, "events", "-f", "--after", "0", "-o", "json"));
    String id = create();
    space("sandbox", "pause", id).ok();
    space("sandbox", "rm", id).ok();
    await().until(() -> types(out, id).contains("sandbox.deleted"));
    assertThat(types(out, id))
        .containsSubsequence(
            "sandbox.creating", "sandbox.running", "sandbox.paused", "sandbox.deleted");
    assertThat(follower.isAlive()).as("it goes on until it is interrupted").isTrue();
  }

  private static List<String> types(ByteArrayOutputStream out, String sandbox) {
    return out.toString(StandardCharsets.UTF_8)
        .lines()
        .map(Json::read)
        .filter(event -> event.path("sandbox_id").asString("").equals(sandbox))
        .map(event -> event.path("type").asString())
        .toList();
  }
}
