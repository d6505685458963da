package dev.space.http;

import java.net.InetSocketAddress;
import java.time.Duration;

/// A running HTTP server with one or more listeners. HTTP/1.0, HTTP/1.1 and HTTP/2, in clear text
/// or with TLS.
public interface HttpServer extends AutoCloseable {

  /// How long [#close] waits for requests to end.
  Duration DEFAULT_GRACE = Duration.ofSeconds(10);

  /// Where a listener really listens.
  InetSocketAddress address(String listener);

  /// Requests, streams, web sockets and tunnels that are open now.
  int open();

  /// Stops: new requests get `shutting_down`, open streams are told and ended, requests in flight
  /// get the grace to end, what is left is cut. Returns when all is closed. Stopping twice is no
  /// error.
  void stop(Duration grace);

  @Override
  default void close() {
    stop(DEFAULT_GRACE);
  }
}
