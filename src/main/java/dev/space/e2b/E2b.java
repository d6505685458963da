package dev.space.e2b;

import dev.space.core.access.ApiKeys;
import dev.space.core.access.Caller;
import dev.space.core.operation.OperationService;
import dev.space.core.sandbox.Sandbox;
import dev.space.core.sandbox.SandboxService;
import dev.space.core.session.SessionService;
import dev.space.core.snapshot.SnapshotService;
import dev.space.core.template.TemplateService;
import dev.space.core.usage.UsageService;
import dev.space.http.Exchange;
import dev.space.http.Handler;
import dev.space.http.HttpListener;
import dev.space.http.Router;
import dev.space.http.Tls;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;

/// The E2B wrapper: builds the listener that E2B's SDKs are pointed at.
public final class E2b {

  /// The listener's name.
  public static final String LISTENER = "e2b";

  /// The name of the one with TLS.
  public static final String TLS_LISTENER = "e2b_tls";

  private final Services services;
  private final EnvdAccess access;
  private final Views views;
  private final Path uploads;
  private final InstantSource clock;
  private final E2bHandler handler;
  private final Router control;
  private final EnvdRoutes envd;

  /// What the wrapper stands on.
  ///
  /// @param find a sandbox whoever it belongs to
  /// @param running all sandboxes that run, whoever they belong to
  public record Services(
      SandboxService sandboxes,
      OperationService operations,
      SessionService sessions,
      SnapshotService snapshots,
      TemplateService templates,
      UsageService usage,
      ApiKeys keys,
      Function<String, Optional<Sandbox>> find,
      Supplier<Stream<Sandbox>> running) {}

  /// Carries a request to a port inside a sandbox and its answer back; headers with a withheld name
  /// (lower case) stay behind.
  @FunctionalInterface
  public interface PortTraffic {
    void carry(Exchange exchange, Caller caller, String sandboxId, int port, Set<String> withheld)
        throws Exception;
  }

  /// @param secret at least 32 random bytes from which the tokens of sandboxes are derived
  /// @param uploads folder for what SDKs upload for template builds
  /// @param domain what SDKs put behind `{port}-{id}.`; told to them with every sandbox
  public E2b(
      Services services,
      byte[] secret,
      Optional<String> domain,
      Path uploads,
      PortTraffic ports,
      InstantSource clock) {
    this.services = services;
    this.access = new EnvdAccess(secret);
    this.views = new Views(access, domain);
    this.uploads = uploads;
    this.clock = clock;
    this.control = control();
    this.envd =
        new EnvdRoutes(
            new ProcessRpc(services.sessions(), clock),
            new FilesystemRpc(new Watchers()),
            new FilesRoutes(),
            services.usage());
    this.handler =
        new E2bHandler(
            services.find(),
            services.running(),
            services.sandboxes(),
            access,
            envd,
            ports,
            services.keys(),
            control,
            clock);
  }

  /// The listener; its errors look as E2B's do.
  public HttpListener listener(InetSocketAddress address) {
    return new HttpListener(LISTENER, address, handler, E2bError.RENDERER, Optional.empty());
  }

  /// The same with TLS, for `https://{port}-{id}.{domain}`.
  public HttpListener secureListener(InetSocketAddress address, Tls tls) {
    return new HttpListener(TLS_LISTENER, address, handler, E2bError.RENDERER, Optional.of(tls));
  }

  /// All calls it answers, as `METHOD /path`: those of the control plane, and those that are meant
  /// for the server inside a sandbox.
  public List<String> routes() {
    List<String> all = new ArrayList<>();
    control.routes().forEach(route -> all.add(route.method() + " " + route.template()));
    all.addAll(envd.routes());
    return List.copyOf(all);
  }

  private Router control() {
    var sandboxes =
        new SandboxRoutes(
            services.sandboxes(), services.operations(), services.snapshots(), views, clock);
    var lists = new ListRoutes(services.sandboxes(), services.snapshots(), views);
    var templates = new TemplateRoutes(services.templates(), services.snapshots());
    var builds =
        new BuildRoutes(
            services.templates(),
            services.operations(),
            new Uploads(uploads, clock),
            access,
            clock);
    var metrics =
        new MetricsRoutes(services.sandboxes(), services.sessions(), services.usage(), clock);
    return Router.builder()
        .get("/health", exchange -> exchange.status(204).sendEmpty())
        .post("/sandboxes", as(sandboxes::createV1))
        .post("/v2/sandboxes", as(sandboxes::createV2))
        .get("/sandboxes", as(lists::sandboxesV1))
        .get("/v2/sandboxes", as(lists::sandboxesV2))
        .get("/sandboxes/metrics", as(metrics::several))
        .get("/sandboxes/{id}", as(sandboxes::get))
        .delete("/sandboxes/{id}", as(sandboxes::delete))
        .post("/sandboxes/{id}/timeout", as(sandboxes::timeout))
        .post("/sandboxes/{id}/refreshes", as(sandboxes::refreshes))
        .post("/sandboxes/{id}/connect", as(sandboxes::connectV1))
        .post("/v2/sandboxes/{id}/connect", as(sandboxes::connectV2))
        .post("/sandboxes/{id}/resume", as(sandboxes::resume))
        .post("/sandboxes/{id}/pause", as(sandboxes::pause))
        .post("/sandboxes/{id}/fork", as(sandboxes::fork))
        .post("/sandboxes/{id}/snapshots", as(sandboxes::snapshot))
        .put("/sandboxes/{id}/network", as(sandboxes::network))
        .get("/sandboxes/{id}/metrics", as(metrics::one))
        .get("/sandboxes/{id}/logs", as(metrics::logs))
        .get("/v2/sandboxes/{id}/logs", as(metrics::logs))
        .get("/snapshots", as(lists::snapshots))
        .get("/templates", as(templates::list))
        .get("/v2/templates", as(templates::list))
        .get("/templates/aliases/{alias}", as(templates::alias))
        .get("/templates/{id}", as(templates::get))
        .delete("/templates/{id}", as(templates::delete))
        .post("/v3/templates", as(builds::request))
        .get("/templates/{id}/files/{hash}", as(builds::files))
        .put("/templates/{id}/files/{hash}", builds::upload)
        .post("/v2/templates/{id}/builds/{build}", as(builds::start))
        .get("/templates/{id}/builds/{build}/status", as(builds::status))
        .build();
  }

  private Handler as(BiConsumer<Exchange, Caller> call) {
    return exchange -> call.accept(exchange, handler.authenticate(exchange));
  }
}
