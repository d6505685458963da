package dev.space.host;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;

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
