package dev.space.http;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The long-lived streams of a server: gives each its signs of life, and tells all when the server
/// stops. One thread looks after all of them; it never blocks on a client.
public final class LiveStreams implements AutoCloseable {

  /// A stream that stays open.
  public interface LiveStream {
    /// Called several times per keep-alive interval; must not block.
    void tick(long nanoTime, Duration keepAlive);

    /// The server stops: tell the client and end. May block for a short time.
    void shutDown();
  }

  private static final Logger LOG = LoggerFactory.getLogger(LiveStreams.class);

  private static final int TICKS_PER_KEEP_ALIVE = 4;

  private final Set<LiveStream> streams = ConcurrentHashMap.newKeySet();
  private final Duration keepAlive;
  private final ScheduledExecutorService ticker =
      Executors.newSingleThreadScheduledExecutor(
          Thread.ofPlatform().name("http-keep-alive").daemon().factory());
  private volatile boolean stopping;

  public LiveStreams(Duration keepAlive) {
    this.keepAlive = keepAlive;
    long period = Math.max(1, keepAlive.toMillis() / TICKS_PER_KEEP_ALIVE);
    var _ = ticker.scheduleAtFixedRate(this::tick, period, period, TimeUnit.MILLISECONDS);
  }

  public void add(LiveStream stream) {
    streams.add(stream);
    if (stopping) {
      Thread.startVirtualThread(stream::shutDown);
    }
  }

  public void remove(LiveStream stream) {
    streams.remove(stream);
  }

  /// Tells every stream that the server stops; returns at once.
  public void shutDown() {
    stopping = true;
    streams.forEach(stream -> Thread.startVirtualThread(stream::shutDown));
  }

  @Override
  public void close() {
    ticker.shutdownNow();
  }

  private void tick() {
    long now = System.nanoTime();
    for (LiveStream stream : streams) {
      try {
        stream.tick(now, keepAlive);
      } catch (RuntimeException e) {
        // What a scheduled task throws ends the schedule, and with it the signs of life of all.
        LOG.warn("A stream failed at its sign of life", e);
      }
    }
  }
}
