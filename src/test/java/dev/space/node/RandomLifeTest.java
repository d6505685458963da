package dev.space.node;

import dev.space.core.error.SpaceException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Hundreds of calls from several clients at once, and daemons that die at random places.
class RandomLifeTest {

  private static final int CLIENTS = 4;
  private static final int BOXES_MAX = 4;

  @TempDir Path dir;

  @Test
  @Tag("slow")
  @DisplayName("behaviours 21, 24, 26, 27: whatever is called and wherever the daemon dies")
  void randomLivesLoseNothing() throws Exception {
    long seed = Long.getLong("seed", System.nanoTime());
    System.out.println("RandomLifeTest seed " + seed + ", repeat with -Dseed=" + seed);
    long end = System.nanoTime() + Duration.ofSeconds(10).toNanos();
    Random random = new Random(seed);
    for (int life = 0; System.nanoTime() < end; life++) {
      Path own = Files.createDirectory(dir.resolve("life-" + life));
      try {
        new Life(own, new Random(random.nextLong())).live();
      } catch (Throwable e) {
        throw new AssertionError("seed " + seed + ", life " + life, e);
      }
      Folders.remove(own);
    }
  }

  /// One host, several daemons after another.
  private static final class Life {
    private final Bed bed;
    private final Oracle oracle;
    private final Random random;

    Life(Path dir, Random random) {
      this.bed = new Bed(dir, random.nextLong());
      this.oracle = new Oracle(bed);
      this.random = random;
    }

    void live() throws Exception {
      for (int daemon = 0; daemon < 5; daemon++) {
        Random fate = new Random(random.nextLong());
        int rarity = 20 + random.nextInt(300);
        Crashes crashes =
            Crashes.at(
                point -> {
                  synchronized (fate) {
                    return fate.nextInt(rarity) == 0;
                  }
                });
        Node node = bed.node(crashes);
        try {
          oracle.recover(node);
          node.target(Bed.TEMPLATE, Bed.SHAPE, random.nextInt(3));
          clients(node, crashes);
        } catch (Crashes.Death | AssertionError e) {
          if (!crashes.dead()) {
            throw e;
          }
        }
        crashes.kill();
        node.close();
        bed.settle();
        Node after = bed.node();
        oracle.recover(after);
        after.close();
      }
      Node last = bed.node();
      oracle.recover(last);
      oracle.useAndRemoveAll(last);
    }

    private void clients(Node node, Crashes crashes) throws Exception {
      List<Future<?>> all = new ArrayList<>();
      List<List<String>> shares = new ArrayList<>();
      for (int client = 0; client < CLIENTS; client++) {
        shares.add(new ArrayList<>(oracle.share(client, CLIENTS)));
      }
      try (ExecutorService each = Executors.newVirtualThreadPerTaskExecutor()) {
        for (int client = 0; client < CLIENTS; client++) {
          Random own = new Random(random.nextLong());
          List<String> mine = shares.get(client);
          all.add(each.submit(() -> client(node, crashes, own, mine)));
        }
      }
      for (Future<?> one : all) {
        one.get();
      }
    }

    private void client(Node node, Crashes crashes, Random own, List<String> mine) {
      for (int call = 0; call < 25 && !crashes.dead(); call++) {
        try {
          call(node, own, mine);
        } catch (Crashes.Death e) {
          return;
        } catch (SpaceException | AssertionError e) {
          // What a dying daemon answers reaches nobody.
          if (!crashes.dead()) {
            throw e;
          }
          return;
        }
      }
    }

    private void call(Node node, Random own, List<String> mine) {
      if (mine.isEmpty() || mine.size() < BOXES_MAX && own.nextInt(4) == 0) {
        mine.add(oracle.create(node, oracle.anySnapshot(own)));
        return;
      }
      String id = mine.get(own.nextInt(mine.size()));
      if (own.nextInt(8) == 0) {
        mine.remove(id);
        oracle.delete(node, id);
        return;
      }
      switch (oracle.state(id)) {
        case RUNNING -> {
          switch (own.nextInt(5)) {
            case 4 -> oracle.suspendDisk(node, id);
            case 0 -> oracle.pause(node, id);
            case 1 -> oracle.suspend(node, id);
            case 2 -> oracle.snapshot(node, id, "snap" + own.nextInt(1_000_000));
            default -> oracle.write(node, id);
          }
        }
        case PAUSED -> {
          if (own.nextBoolean()) {
            oracle.resume(node, id);
          } else {
            oracle.suspend(node, id);
          }
        }
        case SUSPENDED -> {
          if (own.nextInt(4) == 0) {
            oracle.reboot(node, id);
          } else {
            oracle.wake(node, id);
          }
        }
        case ABSENT -> mine.remove(id);
      }
    }
  }
}
