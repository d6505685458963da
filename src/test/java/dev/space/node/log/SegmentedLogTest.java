package dev.space.node.log;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.space.core.error.SpaceException;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.OutputEvent.Stream;
import dev.space.core.guest.ProcessExit;
import dev.space.core.session.OutputLog;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SegmentedLogTest {

  private static final Duration SOON = Duration.ofSeconds(5);
  private static final Duration NOW = Duration.ofMillis(1);
  private static final LogBounds SMALL = new LogBounds(65_536, 262_144, 65_536);

  @TempDir private Path root;

  private DiskOutputLogs logs() {
    return new DiskOutputLogs(root, SMALL);
  }

  private static OutputEvent out(long seq, int length) {
    byte[] data = new byte[length];
    new Random(seq).nextBytes(data);
    return new OutputEvent.Bytes(seq, seq * 10, Stream.STDOUT, data);
  }

  private static OutputEvent exit(long seq) {
    return new OutputEvent.Exited(seq, 0, new ProcessExit(-1, 9, true, true));
  }

  private static List<OutputEvent> readAll(OutputLog log, long after) throws Exception {
    var events = new ArrayList<OutputEvent>();
    try (var reader = log.reader(after)) {
      List<OutputEvent> burst = reader.next(NOW);
      while (!burst.isEmpty()) {
        events.addAll(burst);
        burst = reader.next(NOW);
      }
    }
    return events;
  }

  private static void assertSame(List<OutputEvent> found, List<OutputEvent> expected) {
    assertThat(found).usingRecursiveFieldByFieldElementComparator().isEqualTo(expected);
  }

  @Test
  void every_kind_of_event_comes_back_as_it_was_also_after_a_reopen() throws Exception {
    byte[] all = new byte[256];
    for (int i = 0; i < all.length; i++) {
      all[i] = (byte) i;
    }
    List<OutputEvent> events =
        List.of(
            new OutputEvent.Started(1, 5, 42),
            new OutputEvent.Bytes(2, 6, Stream.STDOUT, all),
            new OutputEvent.Bytes(3, 7, Stream.STDERR, all),
            new OutputEvent.Bytes(4, 8, Stream.PTY, new byte[0]),
            new OutputEvent.Gap(9, 9, 5, 12345),
            exit(10));
    try (var log = logs().open("i1", "s1")) {
      for (OutputEvent event : events) {
        log.append(event);
      }
      assertSame(readAll(log, 0), events);
      assertThat(log.exit()).contains(new ProcessExit(-1, 9, true, true));
    }
    try (var log = logs().open("i1", "s1")) {
      assertSame(readAll(log, 0), events);
      assertSame(readAll(log, 3), events.subList(3, 6));
      assertThat(log.exit()).isPresent();
      assertThat(log.lastSeq()).isEqualTo(10);
    }
  }

  @Test
  @DisplayName("behaviour 6: head and tail stay, one marker says how many bytes are missing")
  void the_middle_goes_when_nobody_reads() throws Exception {
    var log = logs().open("i1", "s1");
    int count = 2000;
    for (int i = 1; i <= count; i++) {
      log.append(out(i, 1000));
    }
    log.append(exit(count + 1));
    log.flush();
    List<OutputEvent> found = readAll(log, 0);
    log.close();
    assertGapIsExact(found, count);
    assertThat(sizeOnDisk()).isLessThan(65_536 + 262_144 + 10_000);
    try (var again = logs().open("i1", "s1")) {
      assertSame(readAll(again, 0), found);
    }
  }

  private static void assertGapIsExact(List<OutputEvent> found, int count) {
    var gaps = found.stream().filter(OutputEvent.Gap.class::isInstance).toList();
    assertThat(gaps).hasSize(1);
    var gap = (OutputEvent.Gap) gaps.getFirst();
    long missing = gap.seq() - gap.firstSeq() + 1;
    assertThat(gap.bytes()).isEqualTo(missing * 1000);
    assertThat(found).hasSize((int) (count + 2 - missing));
    long expected = 1;
    for (OutputEvent event : found) {
      expected = event instanceof OutputEvent.Gap ? gap.seq() : expected;
      assertThat(event.seq()).isEqualTo(expected);
      expected++;
    }
  }

  private long sizeOnDisk() throws IOException {
    try (var files = Files.walk(root)) {
      return files.filter(Files::isRegularFile).mapToLong(file -> file.toFile().length()).sum();
    }
  }

  @Test
  @DisplayName("behaviours 6, 7: a slow reader holds the writer back and loses nothing")
  void a_reader_behind_holds_back_the_writer() throws Exception {
    var logs = logs();
    try (var log = logs.open("i1", "s1");
        var reader = log.reader(0)) {
      int count = 3000;
      var written =
          CompletableFuture.runAsync(
              () -> {
                try {
                  for (int i = 1; i <= count; i++) {
                    log.append(out(i, 1000));
                  }
                  log.append(exit(count + 1));
                  log.end();
                } catch (InterruptedException e) {
                  throw new AssertionError(e);
                }
              });
      await().during(Duration.ofMillis(100)).atMost(SOON).until(() -> !written.isDone());
      assertThat(logs.memoryBytes()).isLessThan(1_000_000);
      long expected = 1;
      while (!reader.finished()) {
        for (OutputEvent event : reader.next(SOON)) {
          assertThat(event.seq()).isEqualTo(expected++);
          assertThat(event).isNotInstanceOf(OutputEvent.Gap.class);
        }
      }
      assertThat(expected).isEqualTo(count + 2);
      written.join();
    }
    assertThat(logs.memoryBytes()).isZero();
  }

  @Test
  void a_reader_that_leaves_frees_the_writer() throws Exception {
    try (var log = logs().open("i1", "s1")) {
      var reader = log.reader(0);
      var written =
          CompletableFuture.runAsync(
              () -> {
                try {
                  for (int i = 1; i <= 1000; i++) {
                    log.append(out(i, 1000));
                  }
                } catch (InterruptedException e) {
                  throw new AssertionError(e);
                }
              });
      await().during(Duration.ofMillis(50)).atMost(SOON).until(() -> !written.isDone());
      reader.close();
      written.join();
      assertThat(log.lastSeq()).isEqualTo(1000);
    }
  }

  @Test
  void a_torn_end_is_cut_at_the_last_whole_record_wherever_it_tears() throws Exception {
    try (var log = logs().open("i1", "s1")) {
      for (int i = 1; i <= 5; i++) {
        log.append(out(i, 40));
      }
    }
    Path file = Segment.path(root.resolve("i1").resolve("s1"), 1);
    byte[] whole = Files.readAllBytes(file);
    int record = RecordCodec.HEADER_BYTES + 40;
    for (int cut = 0; cut <= whole.length; cut++) {
      Files.write(file, Arrays.copyOf(whole, cut));
      long kept = Math.max(0, (cut - Segment.HEADER_BYTES) / record);
      try (var log = logs().open("i1", "s1")) {
        assertThat(log.lastSeq()).isEqualTo(kept);
        for (long i = kept + 1; i <= 6; i++) {
          log.append(out(i, 40));
        }
        log.flush();
        assertSame(
            readAll(log, 0),
            List.of(out(1, 40), out(2, 40), out(3, 40), out(4, 40), out(5, 40), out(6, 40)));
      }
    }
  }

  @Test
  void a_flipped_bit_ends_the_log_there() throws Exception {
    try (var log = logs().open("i1", "s1")) {
      for (int i = 1; i <= 5; i++) {
        log.append(out(i, 40));
      }
    }
    Path file = Segment.path(root.resolve("i1").resolve("s1"), 1);
    byte[] bytes = Files.readAllBytes(file);
    bytes[Segment.HEADER_BYTES + 2 * (RecordCodec.HEADER_BYTES + 40) + 50] ^= 4;
    Files.write(file, bytes, StandardOpenOption.TRUNCATE_EXISTING);
    try (var log = logs().open("i1", "s1")) {
      assertThat(log.lastSeq()).isEqualTo(2);
    }
  }

  @Test
  void a_reader_gets_each_event_once_from_cache_and_files_mixed() throws Exception {
    var random = new Random(7);
    try (var log = logs().open("i1", "s1")) {
      int count = 4000;
      var writer =
          Thread.ofVirtual()
              .start(
                  () -> {
                    try {
                      for (int i = 1; i <= count; i++) {
                        log.append(out(i, i % 97 == 0 ? 64_000 : i % 50));
                      }
                      log.append(exit(count + 1));
                      log.end();
                    } catch (InterruptedException _) {
                      Thread.currentThread().interrupt();
                    }
                  });
      long after = 0;
      boolean finished = false;
      while (!finished) {
        try (var reader = log.reader(after)) {
          for (int i = random.nextInt(20); i >= 0 && !finished; i--) {
            for (OutputEvent event : reader.next(SOON)) {
              // Between two readers nobody holds the log, so a gap may open there alone.
              if (!(event instanceof OutputEvent.Gap)) {
                assertThat(event.seq()).isEqualTo(after + 1);
              }
              after = event.seq();
            }
            finished = reader.finished();
          }
        }
      }
      writer.join();
      assertThat(after).isEqualTo(count + 1);
    }
  }

  @Test
  void numbers_that_jump_are_refused() throws Exception {
    try (var log = logs().open("i1", "s1")) {
      log.append(out(1, 10));
      log.append(out(1, 10));
      assertThat(log.lastSeq()).isEqualTo(1);
      assertThatThrownBy(() -> log.append(out(3, 10))).isInstanceOf(SpaceException.class);
    }
  }

  @Test
  void an_ended_log_ends_its_readers_and_refuses_more() throws Exception {
    try (var log = logs().open("i1", "s1");
        var reader = log.reader(0)) {
      log.append(out(1, 10));
      log.end();
      assertThat(reader.next(SOON)).hasSize(1);
      assertThat(reader.next(SOON)).isEmpty();
      assertThat(reader.finished()).isTrue();
      assertThatThrownBy(() -> log.append(out(2, 10))).isInstanceOf(SpaceException.class);
    }
  }

  @Test
  void epochs_outlive_the_daemon_and_all_goes_with_the_sandbox() throws Exception {
    assertThat(logs().epoch("i1", "s1")).isZero();
    logs().epoch("i1", "s1", 3);
    assertThat(logs().epoch("i1", "s1")).isEqualTo(3);
    logs().epoch("i1", "s1", 2);
    assertThat(logs().epoch("i1", "s1")).isEqualTo(3);
    logs().delete("i1");
    logs().delete("i1");
    assertThat(root.resolve("i1")).doesNotExist();
    assertThatThrownBy(() -> logs().epoch("..", "s1")).isInstanceOf(SpaceException.class);
  }
}
