package dev.space.http;

import dev.space.http.jetty.JettyServer;
import java.net.InetSocketAddress;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.List;

/// A server on a free port of the loopback, for tests of what is behind it.
public final class TestServer implements AutoCloseable {
  private final HttpServer server;

  public TestServer(Handler handler) {
    this(handler, ServerLimits.DEFAULT, RequestObserver.NONE);
  }

  public TestServer(Handler handler, ServerLimits limits, RequestObserver observer) {
    server =
        JettyServer.start(
            List.of(new HttpListener("test", new InetSocketAddress("127.0.0.1", 0), handler)),
            limits,
            new RequestIds(new SecureRandom()),
            observer);
  }

  public HttpServer server() {
    return server;
  }

  public InetSocketAddress address() {
    return server.address("test");
  }

  public RawClient client() throws java.io.IOException {
    return new RawClient(address());
  }

  public String url(String path) {
    return "http://127.0.0.1:" + address().getPort() + path;
  }

  @Override
  public void close() {
    server.stop(Duration.ofSeconds(2));
  }
}
