package dev.space.app;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

/// A data directory on a small file system of its own, filled up.
@Tag("vm")
@Tag("slow")
class FullDiskVmTest {

  private static final int MIB = 900;
  private static final int RESERVE_MIB = 100;

  @Test
  @DisplayName("behaviours 25, 33, 46: a full disk refuses what is new and harms nothing that runs")
  void aFullDiskHarmsNothingThatRuns() throws Exception {
    Path dir = Files.createTempDirectory("space-full-");
    boolean mounted =
        run("mount", "-t", "tmpfs", "-o", "size=" + MIB + "m,mode=0711", "tmpfs", dir.toString());
    assumeThat(mounted).as("a small file system can be mounted here").isTrue();
    try {
      Files.createDirectory(dir.resolve("base"));
      RealDaemon.prepare(dir, dir.resolve("base"));
      fillUp(dir);
    } finally {
      RealDaemon.remove(dir);
      run("umount", "-l", dir.toString());
      Files.deleteIfExists(dir);
    }
  }

  private static void fillUp(Path dir) throws Exception {
    try (RealDaemon daemon = RealDaemon.start(dir, "limits.disk_reserve_mib=" + RESERVE_MIB)) {
      String id = daemon.create();
      String asleep = daemon.create();
      daemon.sh(asleep, "echo kept > /root/f");
      daemon.act(asleep, "suspend");
      Path filler = dir.resolve("filler");
      fill(filler, dir.toFile().getUsableSpace() - (RESERVE_MIB / 2 << 20));
      JsonNode failed = refused(daemon);
      assertThat(failed.toString()).contains("disk_full").contains("MiB are free");
      // Without a byte left nothing can be recorded; what runs goes on.
      fill(filler, dir.toFile().getUsableSpace());
      RealDaemon.Answer nothing =
          daemon.post(RealDaemon.path(id) + "/sessions", "{\"command\":\"true\"}");
      assertThat(nothing.status()).isEqualTo(507);
      assertThat(daemon.state(id)).isEqualTo("running");
      assertThat(daemon.state(asleep)).isEqualTo("suspended");
      Files.delete(filler);
      assertThat(daemon.sh(id, "echo on")).isEqualTo("on\n");
      daemon.act(asleep, "wake");
      assertThat(daemon.sh(asleep, "cat /root/f")).isEqualTo("kept\n");
      daemon.create();
      daemon.sandboxes().forEach(daemon::delete);
      assertThat(daemon.names("vms")).isEmpty();
    }
  }

  /// A create is refused by its call or by its operation.
  private static JsonNode refused(RealDaemon daemon) {
    RealDaemon.Answer answer = daemon.post("/v1/sandboxes", RealDaemon.request());
    if (answer.status() != 202) {
      assertThat(answer.status()).isEqualTo(507);
      return answer.body();
    }
    return daemon.ended(answer).path("error");
  }

  private static void fill(Path file, long more) throws IOException {
    byte[] some = new byte[1 << 20];
    try (RandomAccessFile out = new RandomAccessFile(file.toFile(), "rw")) {
      out.seek(out.length());
      for (long left = more; left > 0; left -= some.length) {
        out.write(some, 0, (int) Math.min(some.length, left));
      }
    } catch (IOException e) {
      // It is full, as it should be.
    }
  }

  private static boolean run(String... argv) throws Exception {
    return new ProcessBuilder(argv).redirectErrorStream(true).start().waitFor() == 0;
  }
}
