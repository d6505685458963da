package dev.space.http;

import java.time.Duration;

/// Bounds of the server.
///
/// @param headerBytesMax request line and headers of one request
/// @param idleTimeout how long a client may take over the next byte of a request, and how long a
///   connection without a request is kept
/// @param keepAlive how often an idle stream gets a sign of life
/// @param drainBytesMax how much of an unread body is read away after an error, so that clients
///   which write before they read see the answer
/// @param platformThreads threads for selectors and the like; handlers run on virtual threads
/// @param streamsPerConnectionMax HTTP/2 streams of one connection
public record ServerLimits(
    int headerBytesMax,
    Duration idleTimeout,
    Duration keepAlive,
    int drainBytesMax,
    int platformThreads,
    int streamsPerConnectionMax) {

  public static final ServerLimits DEFAULT =
      new ServerLimits(
          16 * 1024, Duration.ofSeconds(60), Duration.ofSeconds(15), 16 * 1024 * 1024, 16, 1024);

  /// The same with another keep-alive interval.
  public ServerLimits withKeepAlive(Duration interval) {
    return new ServerLimits(
        headerBytesMax,
        idleTimeout,
        interval,
        drainBytesMax,
        platformThreads,
        streamsPerConnectionMax);
  }

  /// The same with another idle timeout.
  public ServerLimits withIdleTimeout(Duration timeout) {
    return new ServerLimits(
        headerBytesMax,
        timeout,
        keepAlive,
        drainBytesMax,
        platformThreads,
        streamsPerConnectionMax);
  }
}
