package dev.space.vmm.qemu;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/// Keeps the files that take QEMU's messages small: a guest can make it complain as often as it
/// likes. They are open for appending, so cutting one is seen at its next line.
final class LogBound {

  private static final long LOG_BYTES_MAX = 256 * 1024;
  private static final long LOOK_NANOS = Duration.ofSeconds(10).toNanos();

  private final Set<Path> logs = ConcurrentHashMap.newKeySet();
  private boolean watching;

  void add(Path log) {
    logs.add(log);
    watch();
  }

  void remove(Path log) {
    logs.remove(log);
  }

  /// One thread for all files, only while there are any.
  private synchronized void watch() {
    if (!watching) {
      watching = true;
      Thread.ofVirtual().name("qemu-logs").start(this::run);
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

  static void cut(Path log) {
    try (FileChannel channel = FileChannel.open(log, StandardOpenOption.WRITE)) {
      if (channel.size() > LOG_BYTES_MAX) {
        channel.truncate(0);
      }
    } catch (IOException _) {
      // It is gone with its VM.
    }
  }
}
