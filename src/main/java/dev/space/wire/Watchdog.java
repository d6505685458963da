package dev.space.wire;

import java.io.IOException;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/// Holds an exchange to its time. Blocking reads on a channel know no timeout, so the watchdog
/// closes the channel when the time is over, which ends them.
public final class Watchdog implements AutoCloseable {

  private final SocketChannel channel;
  private final long silenceNanos;
  private final long endNanos;
  private final CountDownLatch over = new CountDownLatch(1);
  private volatile long lastHeard = System.nanoTime();
  private volatile boolean fired;

  private Watchdog(SocketChannel channel, long silenceNanos, long endNanos) {
    this.channel = channel;
    this.silenceNanos = silenceNanos;
    this.endNanos = endNanos;
  }

  /// Watches a channel from now on.
  ///
  /// @param deadline for all of the exchange
  /// @param silence how long nothing may come
  public static Watchdog start(
      SocketChannel channel, Optional<Duration> deadline, Optional<Duration> silence) {
    long start = System.nanoTime();
    Watchdog dog =
        new Watchdog(
            channel,
            silence.map(Duration::toNanos).orElse(0L),
            deadline.map(time -> start + time.toNanos()).orElse(0L));
    if (deadline.isPresent() || silence.isPresent()) {
      Thread.ofVirtual().name("wire-deadline").start(dog::watch);
    }
    return dog;
  }

  /// Something came from the server.
  void heard() {
    lastHeard = System.nanoTime();
  }

  /// Whether it was the watchdog that closed the channel.
  public boolean fired() {
    return fired;
  }

  private void watch() {
    try {
      long left = left();
      while (left > 0) {
        if (over.await(left, TimeUnit.NANOSECONDS)) {
          return;
        }
        left = left();
      }
      fired = true;
      channel.close();
    } catch (InterruptedException | IOException e) {
      Thread.currentThread().interrupt();
    }
  }

  private long left() {
    long now = System.nanoTime();
    long left = Long.MAX_VALUE;
    if (silenceNanos > 0) {
      left = silenceNanos - (now - lastHeard);
    }
    if (endNanos != 0) {
      left = Math.min(left, endNanos - now);
    }
    return left;
  }

  /// The exchange is over in time.
  @Override
  public void close() {
    over.countDown();
  }
}
