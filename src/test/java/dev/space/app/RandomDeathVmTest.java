package dev.space.app;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.app.RealDaemon.Answer;
import dev.space.app.RealDaemon.Event;
import dev.space.app.RealDaemon.Session;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

/// Several clients call, and the daemon is killed at random moments; with real VMs.
@Tag("vm")
@Tag("slow")
class RandomDeathVmTest {

  private static final int DEATHS = 4;
  private static final int CLIENTS = 3;
  private static final int BOXES_MAX = 2;
  private static final String COUNT = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.1; done";
  private static final Set<String> ENDED = Set.of("succeeded", "failed", "cancelled");

  /// Sandboxes whose create was answered as done, with their counting session; and those whose
  /// delete was answered.
  private final Map<String, Session> alive = new ConcurrentSkipListMap<>();

  private final Set<String> deleted = new ConcurrentSkipListSet<>();

  @Test
  @DisplayName("behaviours 21, 24, 26, 27: whenever the daemon is killed, the next one owns it all")
  void randomDeathsLoseNothing() throws Exception {
    long seed = Long.getLong("seed", System.nanoTime());
    System.out.println("RandomDeathVmTest seed " + seed + ", repeat with -Dseed=" + seed);
    Random random = new Random(seed);
    Path dir = RealDaemon.prepare("random");
    for (int life = 0; life < DEATHS; life++) {
      try (RealDaemon daemon = RealDaemon.start(dir)) {
        check(daemon, "life " + life + " of seed " + seed);
        call(daemon, random, 1500 + random.nextInt(4000));
        // Its VMs go on: only the process is ended here.
        daemon.forget();
      }
    }
    try (RealDaemon last = RealDaemon.start(dir)) {
      check(last, "the end of seed " + seed);
      last.sandboxes().forEach(last::delete);
      assertThat(last.vms()).isEmpty();
      assertThat(last.names("vms")).isEmpty();
    }
    assertThat(RealDaemon.log(dir)).doesNotContain("by a defect");
  }

  private void call(RealDaemon daemon, Random random, long millis) throws Exception {
    var over = new CountDownLatch(1);
    try (ExecutorService each = Executors.newVirtualThreadPerTaskExecutor()) {
      List<String> all = List.copyOf(alive.keySet());
      for (int client = 0; client < CLIENTS; client++) {
        Random own = new Random(random.nextLong());
        var mine = new ArrayList<String>();
        for (int i = client; i < all.size(); i += CLIENTS) {
          mine.add(all.get(i));
        }
        each.submit(() -> client(daemon, own, mine, over));
      }
      assertThat(over.await(millis, TimeUnit.MILLISECONDS)).isFalse();
      daemon.kill();
      over.countDown();
    }
  }

  /// What a daemon that is killed answers reaches nobody; whatever else fails is found by the
  /// check.
  private void client(RealDaemon daemon, Random own, List<String> mine, CountDownLatch over) {
    try {
      while (over.getCount() > 0) {
        step(daemon, own, mine);
      }
    } catch (UncheckedIOException e) {
      // It was killed.
    } catch (AssertionError e) {
      if (daemon.alive()) {
        System.out.println("a client failed: " + e);
      }
    }
  }

  private void step(RealDaemon daemon, Random own, List<String> mine) {
    if (mine.isEmpty() || mine.size() < BOXES_MAX && own.nextInt(3) == 0) {
      String id = daemon.create();
      alive.put(id, daemon.session(id, COUNT));
      mine.add(id);
      return;
    }
    String id = mine.get(own.nextInt(mine.size()));
    switch (own.nextInt(8)) {
      case 0 -> {
        mine.remove(id);
        alive.remove(id);
        Answer answer = daemon.call("DELETE", RealDaemon.path(id), "", Map.of());
        if (answer.status() == 202) {
          deleted.add(id);
        }
      }
      case 1 -> ended(daemon, daemon.ask(id, "pause"));
      case 2, 3 -> ended(daemon, daemon.ask(id, "suspend"));
      case 4 -> ended(daemon, daemon.post(RealDaemon.path(id) + "/snapshots", ""));
      case 5 -> ended(daemon, daemon.post(RealDaemon.path(id) + "/fork", "{\"count\":1}"));
      default -> {
        // Two at once: both get a true answer.
        Answer one = daemon.ask(id, "wake");
        Answer two = daemon.ask(id, "wake");
        ended(daemon, one);
        ended(daemon, two);
      }
    }
  }

  /// A call that its sandbox's state refuses is answered at once.
  private static void ended(RealDaemon daemon, Answer answer) {
    if (answer.status() == 202) {
      daemon.ended(answer);
    } else {
      assertThat(answer.status()).as(answer.body().toString()).isEqualTo(409);
    }
  }

  private void check(RealDaemon daemon, String when) {
    Awaitility.await(when + ": every operation ends")
        .atMost(Duration.ofSeconds(60))
        .until(() -> open(daemon).isEmpty());
    Set<String> there = daemon.sandboxes();
    assertThat(there).as(when).containsAll(alive.keySet());
    assertThat(deleted).as(when).noneMatch(there::contains);
    var running = new TreeSet<String>();
    for (String id : there) {
      String state = daemon.state(id);
      if (Set.of("running", "paused").contains(state)) {
        running.add(id);
      }
      if (alive.containsKey(id)) {
        assertThat(state).as("%s: %s", when, id).isIn("running", "paused", "suspended");
      } else {
        // A copy, or a create whose answer was lost.
        assertThat(state).as("%s: %s", when, id).isIn("running", "paused", "suspended", "failed");
      }
    }
    Awaitility.await(when + ": VMs have owners")
        .atMost(Duration.ofSeconds(10))
        .untilAsserted(() -> assertThat(daemon.vms().keySet()).isEqualTo(running));
    for (String name : daemon.names("vms")) {
      assertThat(there).as("%s: the owner of vms/%s", when, name).contains(name);
    }
    for (String part : List.of("base", "snapshots")) {
      assertThat(daemon.names(part)).as(when).noneMatch(name -> name.endsWith(".partial"));
    }
    alive.forEach((id, session) -> output(daemon, id, session, when));
    for (String id : there) {
      if (!alive.containsKey(id)) {
        daemon.delete(id);
      }
    }
  }

  /// The session's output is there from its first line, without a gap or a line twice.
  private static void output(RealDaemon daemon, String id, Session session, String when) {
    if (!daemon.state(id).equals("running")) {
      daemon.act(id, "wake");
    }
    List<Event> events = daemon.attach(daemon.again(id, session), 0, event -> event.seq() >= 10);
    List<String> lines = RealDaemon.text(events).lines().toList();
    assertThat(lines).as("%s: output of %s: %s", when, id, events).isNotEmpty();
    for (int i = 0; i < lines.size(); i++) {
      assertThat(lines.get(i)).as("%s: line of %s", when, id).isEqualTo(Integer.toString(i + 1));
    }
  }

  private static List<JsonNode> open(RealDaemon daemon) {
    var open = new ArrayList<JsonNode>();
    daemon
        .get("/v1/operations?limit=1000")
        .body()
        .path("items")
        .forEach(
            operation -> {
              if (!ENDED.contains(operation.path("state").asString())) {
                open.add(operation);
              }
            });
    return open;
  }
}
