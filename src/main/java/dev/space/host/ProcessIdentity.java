package dev.space.host;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/// A process told from any other that may get its pid later.
///
/// @param startTicks field 22 of /proc/PID/stat: start time in clock ticks since the host's boot
public record ProcessIdentity(long pid, long startTicks) {

  private static final long LOOK_NANOS = Duration.ofMillis(1).toNanos();

  /// The live process with this pid, if there is one. A zombie is not alive.
  public static Optional<ProcessIdentity> of(long pid) {
    return Stat.read(pid)
        .filter(stat -> stat.state() != 'Z' && stat.state() != 'X')
        .map(stat -> new ProcessIdentity(pid, stat.startTicks()));
  }

  /// A process that was just started; one that is gone already is told by a start time of 0.
  static ProcessIdentity started(long pid) {
    return of(pid).orElseGet(() -> new ProcessIdentity(pid, 0));
  }

  public boolean alive() {
    return of(pid).filter(this::equals).isPresent();
  }

  /// CPU time used so far in milliseconds; 0 when the process is gone.
  public long cpuMillis() {
    return Stat.read(pid).map(stat -> stat.cpuTicks() * 1000 / TICKS_PER_SECOND).orElse(0L);
  }

  /// Memory of a process in bytes.
  ///
  /// @param resident all that is in RAM, shared pages included
  /// @param own what no other process shares
  public record Memory(long resident, long own) {}

  /// Its memory; nothing when it is gone or may not be looked at.
  public Memory memory() {
    long resident = 0;
    long own = 0;
    for (String line : lines("smaps_rollup")) {
      if (line.startsWith("Rss:")) {
        resident += kibibytes(line);
      } else if (line.startsWith("Private_")) {
        own += kibibytes(line);
      }
    }
    return new Memory(resident, own);
  }

  /// Its real user id; empty when it is gone.
  public Optional<Integer> user() {
    for (String line : lines("status")) {
      if (line.startsWith("Uid:")) {
        return Optional.of(Integer.parseUnsignedInt(line.split("\\s+")[1]));
      }
    }
    return Optional.empty();
  }

  /// Its arguments as they are now; empty when it is gone.
  public List<String> arguments() {
    try {
      byte[] all = Files.readAllBytes(Path.of("/proc", Long.toString(pid), "cmdline"));
      return List.of(new String(all, StandardCharsets.UTF_8).split("\0"));
    } catch (IOException _) {
      return List.of();
    }
  }

  private List<String> lines(String name) {
    try {
      return Files.readAllLines(
          Path.of("/proc", Long.toString(pid), name), StandardCharsets.ISO_8859_1);
    } catch (IOException _) {
      return List.of();
    }
  }

  private static long kibibytes(String line) {
    return Long.parseLong(line.split("\\s+")[1]) * 1024;
  }

  /// All processes of the host.
  public static List<ProcessIdentity> all() {
    try (Stream<Path> entries = Files.list(Path.of("/proc"))) {
      return entries
          .map(entry -> entry.getFileName().toString())
          .filter(name -> name.chars().allMatch(c -> c >= '0' && c <= '9'))
          .flatMap(name -> of(Long.parseLong(name)).stream())
          .toList();
    } catch (IOException e) {
      throw new UncheckedIOException("/proc can't be listed", e);
    }
  }

  /// Sends SIGKILL if it is still this process.
  public void kill() {
    if (alive()) {
      ProcessHandle.of(pid).ifPresent(ProcessHandle::destroyForcibly);
    }
  }

  /// Waits until it is gone.
  ///
  /// @return whether it is
  public boolean awaitGone(Duration atMost) {
    long start = System.nanoTime();
    while (alive()) {
      if (System.nanoTime() - start > atMost.toNanos()) {
        return false;
      }
      LockSupport.parkNanos(LOOK_NANOS);
    }
    return true;
  }

  /// USER_HZ, which Linux fixes for every architecture this runs on.
  private static final long TICKS_PER_SECOND = 100;

  /// What of /proc/PID/stat is wanted here; see proc(5).
  private record Stat(char state, long cpuTicks, long startTicks) {

    /// The name in field 2 may hold anything, so fields are counted from its last parenthesis.
    static Optional<Stat> read(long pid) {
      try {
        String line =
            new String(
                Files.readAllBytes(Path.of("/proc", Long.toString(pid), "stat")),
                StandardCharsets.ISO_8859_1);
        String[] fields = line.substring(line.lastIndexOf(')') + 2).strip().split(" ");
        return Optional.of(
            new Stat(
                fields[0].charAt(0),
                Long.parseLong(fields[11]) + Long.parseLong(fields[12]),
                Long.parseLong(fields[19])));
      } catch (IOException | IndexOutOfBoundsException | NumberFormatException _) {
        return Optional.empty();
      }
    }
  }
}
