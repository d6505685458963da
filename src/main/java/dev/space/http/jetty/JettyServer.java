package dev.space.http.jetty;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.http.HttpListener;
import dev.space.http.HttpServer;
import dev.space.http.LiveStreams;
import dev.space.http.RequestIds;
import dev.space.http.RequestObserver;
import dev.space.http.ServerLimits;
import dev.space.http.Tls;
import java.io.IOException;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import org.eclipse.jetty.alpn.server.ALPNServerConnectionFactory;
import org.eclipse.jetty.http.UriCompliance;
import org.eclipse.jetty.http2.HTTP2Cipher;
import org.eclipse.jetty.http2.server.AbstractHTTP2ServerConnectionFactory;
import org.eclipse.jetty.http2.server.HTTP2CServerConnectionFactory;
import org.eclipse.jetty.http2.server.HTTP2ServerConnectionFactory;
import org.eclipse.jetty.server.ConnectionFactory;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.SecureRequestCustomizer;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.SslConnectionFactory;
import org.eclipse.jetty.util.ssl.SslContextFactory;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import org.eclipse.jetty.websocket.server.ServerWebSocketContainer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The HTTP server on Jetty's core. A bounded pool of platform threads selects and accepts; every
/// handler runs on a virtual thread.
public final class JettyServer implements HttpServer {
  private static final Logger LOG = LoggerFactory.getLogger(JettyServer.class);

  /// Bytes of output that HTTP/2 clients may leave unacknowledged.
  private static final int HTTP2_WINDOW_BYTES = 1024 * 1024;

  private static final int SELECTORS_PER_LISTENER = 1;

  /// Connections the kernel queues while all selectors are busy.
  private static final int ACCEPT_QUEUE = 1024;

  private final Server server;
  private final LiveStreams streams;
  private final RootHandler root;
  private final Map<String, ServerConnector> connectors;

  private JettyServer(
      Server server,
      LiveStreams streams,
      RootHandler root,
      Map<String, ServerConnector> connectors) {
    this.server = server;
    this.streams = streams;
    this.root = root;
    this.connectors = connectors;
  }

  /// Starts listening.
  ///
  /// @throws SpaceException PREREQUISITE_MISSING when an address can't be listened on
  public static JettyServer start(
      List<HttpListener> listeners, ServerLimits limits, RequestIds ids, RequestObserver observer) {
    var pool = new QueuedThreadPool(limits.platformThreads());
    pool.setName("http");
    pool.setDaemon(true);
    pool.setVirtualThreadsExecutor(
        Executors.newThreadPerTaskExecutor(Thread.ofVirtual().name("http-", 0).factory()));
    var server = new Server(pool);
    server.setStopAtShutdown(false);
    server.setStopTimeout(0);
    server.setErrorHandler(new BadMessageHandler(ids));
    var streams = new LiveStreams(limits.keepAlive());
    var byConnector = new HashMap<Connector, HttpListener>();
    var byName = new HashMap<String, ServerConnector>();
    for (HttpListener listener : listeners) {
      ServerConnector connector = connector(server, listener, limits);
      server.addConnector(connector);
      byConnector.put(connector, listener);
      byName.put(listener.name(), connector);
    }
    var root =
        new RootHandler(
            Map.copyOf(byConnector),
            ids,
            observer,
            streams,
            limits,
            ServerWebSocketContainer.ensure(server));
    server.setHandler(root);
    var started = new JettyServer(server, streams, root, Map.copyOf(byName));
    try {
      for (HttpListener listener : listeners) {
        open(byName, listener);
      }
      server.start();
    } catch (SpaceException e) {
      started.stopJetty();
      throw e;
    } catch (Exception e) {
      started.stopJetty();
      throw Problem.of(ErrorCode.INTERNAL, "The HTTP server does not start")
          .because(String.valueOf(e.getMessage()))
          .toException(e);
    }
    for (HttpListener listener : listeners) {
      LOG.info("{} listens on {}", listener.name(), started.address(listener.name()));
    }
    return started;
  }

  private static ServerConnector connector(
      Server server, HttpListener listener, ServerLimits limits) {
    var config = new HttpConfiguration();
    config.setSendServerVersion(false);
    config.setRequestHeaderSize(limits.headerBytesMax());
    // Paths are split and decoded by our router, which refuses what is broken; a port route hands
    // them on as they are.
    config.setUriCompliance(UriCompliance.from(EnumSet.allOf(UriCompliance.Violation.class)));
    var http2 = new HTTP2CServerConnectionFactory(config);
    limit(http2, limits);
    var connector =
        listener.tls().isPresent()
            ? new ServerConnector(
                server, 0, SELECTORS_PER_LISTENER, secure(config, limits, listener.tls().get()))
            : new ServerConnector(
                server, 0, SELECTORS_PER_LISTENER, new HttpConnectionFactory(config), http2);
    connector.setName(listener.name());
    connector.setHost(listener.address().getAddress().getHostAddress());
    connector.setPort(listener.address().getPort());
    connector.setIdleTimeout(limits.idleTimeout().toMillis());
    connector.setAcceptQueueSize(ACCEPT_QUEUE);
    connector.setAcceptedTcpNoDelay(true);
    return connector;
  }

  private static void limit(AbstractHTTP2ServerConnectionFactory http2, ServerLimits limits) {
    http2.setMaxConcurrentStreams(limits.streamsPerConnectionMax());
    http2.setInitialStreamRecvWindow(HTTP2_WINDOW_BYTES);
    http2.setInitialSessionRecvWindow(2 * HTTP2_WINDOW_BYTES);
  }

  /// TLS, and in it what the client chooses. A name that the certificate isn't for is the client's
  /// to refuse: who comes by address alone is answered too.
  private static ConnectionFactory[] secure(HttpConfiguration base, ServerLimits limits, Tls tls) {
    var config = new HttpConfiguration(base);
    config.addCustomizer(new SecureRequestCustomizer(false));
    var context = new SslContextFactory.Server();
    context.setKeyStore(PemIdentity.load(tls));
    context.setKeyStorePassword(PemIdentity.PASSWORD);
    context.setCipherComparator(HTTP2Cipher.COMPARATOR);
    var http1 = new HttpConnectionFactory(config);
    var http2 = new HTTP2ServerConnectionFactory(config);
    limit(http2, limits);
    var alpn = new ALPNServerConnectionFactory();
    alpn.setDefaultProtocol(http1.getProtocol());
    return new ConnectionFactory[] {
      new SslConnectionFactory(context, alpn.getProtocol()), alpn, http2, http1
    };
  }

  private static void open(Map<String, ServerConnector> connectors, HttpListener listener) {
    InetSocketAddress address = listener.address();
    String shown = address.getHostString() + ":" + address.getPort();
    try {
      java.util.Objects.requireNonNull(connectors.get(listener.name())).open();
    } catch (IOException e) {
      boolean inUse = e instanceof BindException || e.getCause() instanceof BindException;
      throw Problem.of(
              ErrorCode.PREREQUISITE_MISSING,
              "Cannot listen on " + shown + " for the " + listener.name() + " listener")
          .because(
              e.getCause() == null
                  ? String.valueOf(e.getMessage())
                  : String.valueOf(e.getCause().getMessage()))
          .remedy(
              inUse
                  ? "Stop what listens there (ss -ltnp 'sport = :"
                      + address.getPort()
                      + "' names it) or choose another address."
                  : "Choose an address of this machine.")
          .toException(e);
    }
  }

  @Override
  public InetSocketAddress address(String listener) {
    ServerConnector connector = connectors.get(listener);
    if (connector == null) {
      throw Problem.of(ErrorCode.INTERNAL, "There is no listener " + listener).toException();
    }
    return new InetSocketAddress(connector.getHost(), connector.getLocalPort());
  }

  @Override
  public int open() {
    return root.open();
  }

  @Override
  public void stop(Duration grace) {
    root.refuse();
    streams.shutDown();
    if (!root.awaitIdle(grace)) {
      LOG.warn("{} requests did not end within {} s and are cut", root.open(), grace.toSeconds());
    }
    stopJetty();
  }

  private void stopJetty() {
    try {
      server.stop();
    } catch (Exception e) {
      LOG.warn("The HTTP server did not stop cleanly", e);
    } finally {
      streams.close();
      server.destroy();
    }
  }
}
