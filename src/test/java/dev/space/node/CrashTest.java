package dev.space.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.space.node.FailPoints.Point;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class CrashTest {

  @TempDir Path dir;

  @ParameterizedTest
  @EnumSource(Point.class)
  @DisplayName("behaviour 26: a daemon that dies at any place leaves nothing without an owner")
  void dyingAnywhereLosesNothing(Point point) {
    dieAt(point, 1);
  }

  @ParameterizedTest
  @ValueSource(
      ints = {
        2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42
      })
  @DisplayName("behaviour 26: a daemon that dies at any write of its journal loses nothing")
  void dyingAtAnyWriteLosesNothing(int times) {
    dieAt(Point.JOURNAL_WRITE, times);
  }

  private void dieAt(Point point, int times) {
    Bed bed = new Bed(dir);
    Oracle oracle = new Oracle(bed);
    AtomicInteger reached = new AtomicInteger();
    Crashes crashes = Crashes.at(at -> at == point && reached.incrementAndGet() == times);
    Node first = bed.node(crashes);
    try {
      live(first, oracle, crashes);
      awaitDeath(crashes);
    } catch (Crashes.Death _) {
      // As planned.
    }
    assertThat(crashes.dead()).as("%s was reached %s times", point, reached).isTrue();
    first.close();
    Node second = bed.node();
    oracle.recover(second);
    oracle.useAndRemoveAll(second);
  }

  private static void awaitDeath(Crashes crashes) {
    await().atMost(Duration.ofSeconds(10)).until(crashes::dead);
  }

  /// A life that passes every fail point.
  private static void live(Node node, Oracle oracle, Crashes crashes) {
    String a = oracle.create(node, Optional.empty());
    String b = oracle.create(node, Optional.empty());
    oracle.pause(node, a);
    oracle.resume(node, a);
    oracle.write(node, a);
    oracle.suspend(node, a);
    oracle.pause(node, b);
    oracle.suspend(node, b);
    oracle.wake(node, a);
    oracle.write(node, a);
    oracle.suspendDisk(node, a);
    oracle.wake(node, a);
    oracle.write(node, a);
    oracle.suspend(node, a);
    oracle.reboot(node, a);
    oracle.write(node, a);
    oracle.snapshot(node, a, "snap");
    oracle.write(node, a);
    oracle.create(node, Optional.of("snap"));
    node.target(Bed.TEMPLATE, Bed.SHAPE, 1);
    await()
        .atMost(Duration.ofSeconds(10))
        .until(() -> node.capacity().warm() == 1 || crashes.dead());
    oracle.create(node, Optional.empty());
    oracle.delete(node, a);
    node.target(Bed.TEMPLATE, Bed.SHAPE, 0);
  }

  @Test
  void twoDeathsInARowLoseNothing() {
    for (Point point : Point.values()) {
      if (point.name().startsWith("WARM") || point == Point.BACKGROUND) {
        continue;
      }
      Path own = dir.resolve(point.name());
      assertThat(own.toFile().mkdir()).isTrue();
      Bed bed = new Bed(own);
      Oracle oracle = new Oracle(bed);
      Crashes crashes = Crashes.at(at -> at == point);
      Node first = bed.node(crashes);
      try {
        live(first, oracle, crashes);
      } catch (Crashes.Death _) {
        // As planned.
      }
      first.close();
      AtomicInteger writes = new AtomicInteger();
      Node second =
          bed.node(Crashes.at(at -> at == Point.JOURNAL_WRITE && writes.incrementAndGet() == 2));
      try {
        oracle.recover(second);
      } catch (Crashes.Death | AssertionError _) {
        // It may die in its recovery, or live through it.
      }
      second.close();
      Node third = bed.node();
      oracle.recover(third);
      oracle.useAndRemoveAll(third);
    }
  }
}
