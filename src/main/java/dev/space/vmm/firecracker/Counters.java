package dev.space.vmm.firecracker;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// What Firecracker processes count, summed up over all of them, and what the driver counts itself.
///
/// Each process adds a line of JSON a minute to its metrics file, holding what came since the line
/// before. Files are read when somebody asks. What is read comes from processes that guests may
/// have taken over: it is bounded, and only ever added.
final class Counters {

  /// Section and field of Firecracker's metrics.
  private static final List<List<String>> WANTED =
      List.of(
          List.of("block", "read_bytes"),
          List.of("block", "write_bytes"),
          List.of("block", "read_count"),
          List.of("block", "write_count"),
          List.of("block", "rate_limiter_throttled_events"),
          List.of("vsock", "rx_bytes_count"),
          List.of("vsock", "tx_bytes_count"),
          List.of("vsock", "rx_queue_event_fails"),
          List.of("vcpu", "failures"),
          List.of("seccomp", "num_faults"),
          List.of("uart", "rate_limiter_dropped_bytes"));

  private static final int READ_BYTES_MAX = 1 << 20;

  /// No honest line tells of more.
  private static final long STEP_MAX = 1L << 44;

  private static final JsonMapper JSON = JsonMapper.builder().build();

  private final Map<Path, Long> offsets = new ConcurrentHashMap<>();
  private final Map<String, Long> sums = new LinkedHashMap<>();

  Counters() {
    WANTED.forEach(name -> sums.put(String.join("_", name), 0L));
  }

  void add(Path metrics) {
    offsets.put(metrics, 0L);
  }

  /// Reads a file for the last time.
  void remove(Path metrics) {
    read(metrics);
    offsets.remove(metrics);
  }

  synchronized void count(String name, long more) {
    sums.merge(name, more, Long::sum);
  }

  /// All counters as they are now.
  Map<String, Long> now() {
    offsets.keySet().forEach(this::read);
    synchronized (this) {
      return new LinkedHashMap<>(sums);
    }
  }

  private synchronized void read(Path metrics) {
    Long from = offsets.get(metrics);
    if (from == null) {
      return;
    }
    try (FileChannel in = FileChannel.open(metrics, StandardOpenOption.READ)) {
      long at = in.size() < from ? 0 : from;
      ByteBuffer buffer = ByteBuffer.allocate((int) Math.min(READ_BYTES_MAX, in.size() - at));
      while (buffer.hasRemaining() && in.read(buffer, at + buffer.position()) > 0) {
        // One read may give less than is there.
      }
      String text = new String(buffer.array(), 0, buffer.position(), StandardCharsets.ISO_8859_1);
      int end = text.lastIndexOf('\n') + 1;
      // A line that is longer than all of the buffer is none of Firecracker's.
      offsets.put(
          metrics, at + (end == 0 && buffer.position() == READ_BYTES_MAX ? READ_BYTES_MAX : end));
      text.substring(0, end).lines().forEach(this::take);
    } catch (IOException _) {
      // It is gone with its VM.
    }
  }

  private void take(String line) {
    try {
      JsonNode all = JSON.readTree(line.replace("\0", ""));
      for (List<String> name : WANTED) {
        long step = all.path(name.getFirst()).path(name.getLast()).asLong(0);
        if (step > 0 && step < STEP_MAX) {
          sums.merge(String.join("_", name), step, Long::sum);
        }
      }
    } catch (JacksonException _) {
      // Half a line, where a file was cut.
    }
  }
}
