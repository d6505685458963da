package dev.space.host;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/// Keeps the files small that take the messages of VM processes: a guest can make one complain as
/// often as it likes. One that is open for appending is cut; what is written at a place of its own
/// leaves a hole before it, which occupies nothing.
public final class LogBound {

  private static final long LOG_BYTES_MAX = 256 * 1024;
  private static final long LOOK_NANOS = Duration.ofSeconds(10).toNanos();

  private final Set<Path> logs = ConcurrentHashMap.newKeySet();
  private boolean watching;

  /// Watches a file from now on.
  public void add(Path log) {
    logs.add(log);
    watch();
  }

  /// Watches a file no more.
  public void remove(Path log) {
    logs.remove(log);
  }

  /// One thread for all files, only while there are any.
  private synchronized void watch() {
    if (!watching) {
      watching = true;
      Thread.ofVirtual().name("vm-logs").start(this::run);
    }
  }

  private synchronized boolean idle() {
    watching = !logs.isEmpty();
    return !watching;
  }

  private void run() {
    while (!idle()) {
      LockSupport.parkNanos(LOOK_NANOS);
      logs.forEach(LogBound::cut);
    }
  }

  /// Empties a file that has grown over the bound.
  public static void cut(Path log) {
    try (FileChannel channel = FileChannel.open(log, StandardOpenOption.WRITE)) {
      if (channel.size() > LOG_BYTES_MAX) {
        channel.truncate(0);
      }
    } catch (IOException _) {
      // It is gone with its VM.
    }
  }
}
