package dev.space.app;

import dev.space.api.ApiServices;
import dev.space.api.ApiSettings;
import dev.space.api.NativeApi;
import dev.space.api.ServiceMetrics;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.dataplane.DataPlane;
import dev.space.dataplane.PortTokens;
import dev.space.e2b.E2b;
import dev.space.http.HttpListener;
import dev.space.http.HttpServer;
import dev.space.http.RequestIds;
import dev.space.http.ServerLimits;
import dev.space.http.Tls;
import dev.space.http.jetty.JettyServer;
import dev.space.node.log.KeyFile;
import java.io.IOException;
import java.net.Inet6Address;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The service: everything assembled, in the order things start; stopped in the reverse order.
public final class Daemon implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(Daemon.class);
  private static final Duration STOP_GRACE = Duration.ofSeconds(5);
  private static final String CONTROL = "control";
  private static final String DATA = "data";

  private final Deque<AutoCloseable> opened = new ArrayDeque<>();
  private final CountDownLatch stopped = new CountDownLatch(1);
  private final String controlUrl;
  private final String dataUrl;
  private final Optional<String> e2bUrl;
  private final Optional<String> e2bTlsUrl;
  private final boolean keyIsNew;
  private volatile boolean ready;

  private Daemon(
      SpaceConfig config, Path home, Map<String, String> environment, boolean announced) {
    try {
      InstantSource clock = InstantSource.system();
      var random = new SecureRandom();
      DataDirectory directory = push(DataDirectory.open(config.dataDir()));
      Driver driver =
          switch (config.vmm()) {
            case AUTO, QEMU, FIRECRACKER ->
                new Machine(config, home, environment).driver(clock, random);
            case SIMULATED -> SimulatedMachine.driver(clock, random);
          };
      var services = push(new Services(config, driver, clock, random));
      this.keyIsNew = BootstrapKey.ensure(services.keys(), directory.path());
      services.recover();
      // What did not get to its start has no say in what becomes of sandboxes.
      push(
          () -> {
            if (ready) {
              services.settle();
            }
          });

      HttpServer server = serve(config, services, driver, clock, random);
      push(() -> server.stop(STOP_GRACE));
      this.controlUrl = url(server.address(CONTROL));
      this.dataUrl = config.dataUrl().orElseGet(() -> url(server.address(DATA)));
      this.e2bUrl = config.e2b().listen().map(_ -> url(server.address(E2b.LISTENER)));
      this.e2bTlsUrl =
          config
              .e2b()
              .tls()
              .map(_ -> url(server.address(E2b.TLS_LISTENER)).replaceFirst("^http", "https"));
      if (announced) {
        push(DaemonFile.write(directory.path(), controlUrl, dataUrl, e2bUrl, e2bTlsUrl));
      }
      services.fillPools();
      ready = true;
      LOG.info("ready: {} with {}", controlUrl, driver.vmm().isolation().wire());
    } catch (RuntimeException e) {
      close();
      throw e;
    }
  }

  /// Starts the service.
  ///
  /// @param home the project's folder
  /// @param announced whether other commands on this machine are to find and use it: not one that
  ///   ends with the command it was started for
  /// @throws SpaceException PREREQUISITE_MISSING listing all that the machine lacks; CONFLICT when
  ///   another daemon holds the data directory; whatever else keeps it from starting
  public static Daemon start(
      SpaceConfig config, Path home, Map<String, String> environment, boolean announced) {
    return new Daemon(config, home, environment, announced);
  }

  private static HttpServer serve(
      SpaceConfig config,
      Services services,
      Driver driver,
      InstantSource clock,
      SecureRandom random) {
    var metrics = new ServiceMetrics(services.node());
    metrics.monitor(() -> driver.vmm().counters());
    services.events().listen(metrics::count);
    var dataPort = new java.util.concurrent.atomic.AtomicInteger();
    var settings =
        new ApiSettings(
            config.dataUrl(),
            dataPort::get,
            Version.current(),
            services.node().isolation().wire(),
            Optional::empty);
    var api =
        NativeApi.router(
            new ApiServices(
                services.keys(),
                services.sandboxes(),
                services.operations(),
                services.sessions(),
                services.templates(),
                services.snapshots(),
                services.events(),
                services.usage(),
                services.node()),
            settings,
            metrics);
    var data =
        new DataPlane(
            services.sessions(),
            services,
            services.keys(),
            new PortTokens(services.tokens(), clock),
            config.portDomain(),
            clock);
    List<HttpListener> listeners = new ArrayList<>();
    listeners.add(new HttpListener(CONTROL, config.listen(), api));
    listeners.add(new HttpListener(DATA, config.dataListen(), data.handler()));
    if (config.e2b().listen().isPresent() || config.e2b().tls().isPresent()) {
      E2b e2b = e2b(config, services, data, clock, random);
      config.e2b().listen().ifPresent(address -> listeners.add(e2b.listener(address)));
      config
          .e2b()
          .tls()
          .ifPresent(
              tls ->
                  listeners.add(
                      e2b.secureListener(tls.listen(), new Tls(tls.certificate(), tls.key()))));
    }
    HttpServer server =
        JettyServer.start(listeners, ServerLimits.DEFAULT, new RequestIds(random), metrics);
    dataPort.set(server.address(DATA).getPort());
    metrics.openRequests(server::open);
    return server;
  }

  static E2b e2b(
      SpaceConfig config,
      Services services,
      DataPlane data,
      InstantSource clock,
      SecureRandom random) {
    return new E2b(
        new E2b.Services(
            services.sandboxes(),
            services.operations(),
            services.sessions(),
            services.snapshots(),
            services.templates(),
            services.usage(),
            services.keys(),
            services::find,
            services::running),
        KeyFile.readOrMake(config.dataDir().resolve("e2b-key"), random),
        config.e2b().domain(),
        config.dataDir().resolve("e2b-uploads"),
        data::carry,
        clock);
  }

  private static String url(InetSocketAddress address) {
    String host = address.getAddress().getHostAddress();
    if (address.getAddress().isAnyLocalAddress()) {
      host = "127.0.0.1";
    } else if (address.getAddress() instanceof Inet6Address) {
      host = "[" + host + "]";
    }
    return "http://" + host + ":" + address.getPort();
  }

  private <T extends AutoCloseable> T push(T part) {
    opened.push(part);
    return part;
  }

  /// Where the control plane answers.
  public String controlUrl() {
    return controlUrl;
  }

  /// Where the data plane answers.
  public String dataUrl() {
    return dataUrl;
  }

  /// Where E2B's SDKs are served.
  public Optional<String> e2bUrl() {
    return e2bUrl;
  }

  /// Where they are served with TLS.
  public Optional<String> e2bTlsUrl() {
    return e2bTlsUrl;
  }

  /// Whether this start made the bootstrap key, which is then in `api-key` of the data directory.
  public boolean keyIsNew() {
    return keyIsNew;
  }

  /// Blocks until the service was closed.
  public void awaitStop() throws InterruptedException {
    stopped.await();
  }

  /// Refuses new work, tells open streams, lets VMs run on or suspends them as configured, and
  /// returns when all is closed.
  @Override
  public synchronized void close() {
    if (ready && !opened.isEmpty()) {
      LOG.info("stopping");
    }
    while (!opened.isEmpty()) {
      AutoCloseable part = opened.pop();
      try {
        part.close();
      } catch (Exception e) {
        LOG.warn("{} did not close cleanly", part.getClass().getSimpleName(), e);
      }
    }
    if (ready && stopped.getCount() > 0) {
      LOG.info("stopped");
    }
    stopped.countDown();
  }

  /// Tells the command line on this machine where the daemon is.
  private record DaemonFile(Path path) implements AutoCloseable {

    static DaemonFile write(
        Path dataDir,
        String controlUrl,
        String dataUrl,
        Optional<String> e2bUrl,
        Optional<String> e2bTlsUrl) {
      Path path = dataDir.resolve("daemon.json");
      String json =
          "{\"control_url\":\"%s\",\"data_url\":\"%s\",%s%s\"pid\":%d}\n"
              .formatted(
                  controlUrl,
                  dataUrl,
                  e2bUrl.map("\"e2b_url\":\"%s\","::formatted).orElse(""),
                  e2bTlsUrl.map("\"e2b_tls_url\":\"%s\","::formatted).orElse(""),
                  ProcessHandle.current().pid());
      try {
        Path part = dataDir.resolve("daemon.json.partial");
        Files.writeString(part, json);
        Files.move(
            part,
            path,
            java.nio.file.StandardCopyOption.ATOMIC_MOVE,
            java.nio.file.StandardCopyOption.REPLACE_EXISTING);
        return new DaemonFile(path);
      } catch (IOException e) {
        throw Problem.of(ErrorCode.PREREQUISITE_MISSING, path + " can't be written")
            .because(e)
            .toException(e);
      }
    }

    @Override
    public void close() throws IOException {
      Files.deleteIfExists(path);
    }
  }
}
