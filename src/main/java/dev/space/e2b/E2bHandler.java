package dev.space.e2b;

import dev.space.core.access.ApiKeys;
import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.sandbox.Sandbox;
import dev.space.core.sandbox.SandboxService;
import dev.space.core.sandbox.SandboxState;
import dev.space.core.sandbox.UpdateSandbox;
import dev.space.e2b.EnvdAccess.SignedUrl;
import dev.space.http.Exchange;
import dev.space.http.Handler;
import java.time.Duration;
import java.time.InstantSource;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// Everything E2B's SDKs ask, on one listener. Who answers is told apart in this order: both E2B
/// headers, a host name `{port}-{id}.…`, a signed file URL, else the control plane.
final class E2bHandler implements Handler {

  private static final int ENVD_PORT = 49_983;
  private static final int PORT_MAX = 65_535;
  private static final String KEY_ID = "envd";
  private static final Duration WOKEN_LIVES_MIN = Duration.ofMinutes(5);
  private static final Set<String> WITHHELD =
      Set.of("e2b-sandbox-id", "e2b-sandbox-port", "e2b-traffic-access-token", "x-api-key");
  private static final Pattern HOST_LABEL = Pattern.compile("(\\d{1,5})-([a-z0-9]+)\\..*");
  private static final Pattern SANDBOX_ID = Pattern.compile("[a-z0-9]{1,64}");

  private final Function<String, Optional<Sandbox>> find;
  private final Supplier<Stream<Sandbox>> running;
  private final SandboxService sandboxes;
  private final EnvdAccess access;
  private final EnvdRoutes envd;
  private final E2b.PortTraffic ports;
  private final ApiKeys keys;
  private final Handler control;
  private final InstantSource clock;

  /// @param find a sandbox whoever it belongs to
  /// @param running all sandboxes that run, whoever they belong to
  /// @param control answers the control plane's calls once their caller is known
  E2bHandler(
      Function<String, Optional<Sandbox>> find,
      Supplier<Stream<Sandbox>> running,
      SandboxService sandboxes,
      EnvdAccess access,
      EnvdRoutes envd,
      E2b.PortTraffic ports,
      ApiKeys keys,
      Handler control,
      InstantSource clock) {
    this.find = find;
    this.running = running;
    this.sandboxes = sandboxes;
    this.access = access;
    this.envd = envd;
    this.ports = ports;
    this.keys = keys;
    this.control = control;
    this.clock = clock;
  }

  @Override
  public void handle(Exchange exchange) throws Exception {
    Cors.headers(exchange);
    if (exchange.method().equals("OPTIONS")) {
      Cors.preflight(exchange);
      return;
    }
    try {
      dispatch(exchange);
    } catch (E2bError e) {
      e.send(exchange);
    } catch (ConnectException e) {
      E2bError.send(exchange, e.code().status(), e.text());
    }
  }

  private void dispatch(Exchange exchange) throws Exception {
    Optional<String> id = exchange.header("E2b-Sandbox-Id");
    Optional<String> port = exchange.header("E2b-Sandbox-Port");
    if (id.isPresent() && port.isPresent()) {
      dataPlane(exchange, id.get(), port(port.get()));
      return;
    }
    Matcher host = HOST_LABEL.matcher(exchange.host().orElse(""));
    if (host.matches()) {
      dataPlane(exchange, host.group(2), port(host.group(1)));
    } else if (exchange.rawPath().equals("/files")
        && exchange.query().one("signature").isPresent()) {
      signedFile(exchange);
    } else {
      control.handle(exchange);
    }
  }

  private static int port(String text) {
    try {
      int port = Integer.parseInt(text.strip());
      if (port >= 1 && port <= PORT_MAX) {
        return port;
      }
    } catch (NumberFormatException _) {
      // Told below.
    }
    throw new E2bError(400, "invalid sandbox port");
  }

  private void dataPlane(Exchange exchange, String id, int port) throws Exception {
    if (!SANDBOX_ID.matcher(id).matches()) {
      throw new E2bError(400, "invalid sandbox ID");
    }
    Optional<Sandbox> sandbox = find.apply(id).filter(E2bHandler::answers);
    if (sandbox.isEmpty()) {
      E2bError.sandboxGone(exchange, id);
      return;
    }
    try {
      if (port == ENVD_PORT) {
        envd(exchange, sandbox.get());
      } else {
        port(exchange, sandbox.get(), port);
      }
    } catch (SpaceException e) {
      if (exchange.committed()) {
        throw e;
      }
      switch (e.code()) {
        case SANDBOX_NOT_FOUND, SANDBOX_DIED, ILLEGAL_STATE, GUEST_UNREACHABLE ->
            E2bError.sandboxGone(exchange, id);
        case PORT_CLOSED -> E2bError.portClosed(exchange, id, port);
        default -> throw e;
      }
    }
  }

  /// Whether traffic to it is answered: it runs, is about to, or may be woken by the traffic.
  private static boolean answers(Sandbox sandbox) {
    return switch (sandbox.state()) {
      case CREATING, RUNNING, PAUSING, RESUMING, WAKING -> true;
      // E2B wakes nothing by traffic that has to be booted for it.
      case PAUSED, SUSPENDING, SUSPENDED -> sandbox.autoWake() && !sandbox.diskOnly();
      case STOPPED, FAILED, DELETING, DELETED -> false;
    };
  }

  private void envd(Exchange exchange, Sandbox sandbox) throws Exception {
    if (exchange.rawPath().equals("/health")) {
      health(exchange, sandbox);
      return;
    }
    boolean file = exchange.rawPath().equals("/files");
    Optional<String> token = exchange.header("X-Access-Token").filter(t -> !t.isEmpty());
    if (!Notes.of(sandbox).insecure()) {
      if (token.isPresent() && !access.mayEnter(sandbox, token.get())) {
        throw new E2bError(
            401,
            file
                ? "access token present in header but does not match"
                : "unauthorized access, please provide a valid access token or method signing if supported");
      }
      if (token.isEmpty() && file) {
        checkSignature(exchange, sandbox);
      } else if (token.isEmpty()) {
        throw new E2bError(
            401,
            "unauthorized access, please provide a valid access token or method signing if supported");
      }
    }
    wake(exchange, sandbox);
    envd.handle(new EnvdCall(exchange, sandboxes, caller(exchange, sandbox), sandbox));
  }

  /// Wakes what sleeps and gives it the time that E2B gives what is woken by traffic: that of its
  /// create, but five minutes at least.
  private void wake(Exchange exchange, Sandbox sandbox) {
    if (!asleep(sandbox)) {
      return;
    }
    Caller caller = caller(exchange, sandbox);
    try (var use = sandboxes.use(caller, sandbox.id())) {
      Duration first = Notes.of(use.sandbox()).timeout().orElse(WOKEN_LIVES_MIN);
      sandboxes.update(
          caller,
          sandbox.id(),
          UpdateSandbox.ofTimeout(first.compareTo(WOKEN_LIVES_MIN) < 0 ? WOKEN_LIVES_MIN : first));
    }
  }

  private static boolean asleep(Sandbox sandbox) {
    return switch (sandbox.state()) {
      case PAUSED, SUSPENDING, SUSPENDED -> true;
      case CREATING, RUNNING, PAUSING, RESUMING, WAKING, STOPPED, FAILED, DELETING, DELETED ->
          false;
    };
  }

  private static void health(Exchange exchange, Sandbox sandbox) {
    if (sandbox.state() == SandboxState.RUNNING) {
      exchange.status(204).sendEmpty();
    } else {
      E2bError.sandboxGone(exchange, sandbox.id());
    }
  }

  private void port(Exchange exchange, Sandbox sandbox, int port) throws Exception {
    if (Notes.of(sandbox).privatePorts()) {
      Optional<String> token = exchange.header("e2b-traffic-access-token");
      if (token.filter(t -> access.mayPass(sandbox, t)).isEmpty()) {
        throw new E2bError(403, "the traffic access token is missing or wrong");
      }
    }
    wake(exchange, sandbox);
    ports.carry(exchange, caller(exchange, sandbox), sandbox.id(), port, WITHHELD);
  }

  /// A signed URL names no sandbox: it is the one whose token made the signature.
  private void signedFile(Exchange exchange) throws Exception {
    SignedUrl url = signedUrl(exchange);
    Optional<Sandbox> sandbox =
        running.get().filter(s -> access.signedFor(s.id(), url)).findFirst();
    if (sandbox.isEmpty()) {
      throw new E2bError(401, "invalid signature");
    }
    checkSignature(exchange, sandbox.get());
    envd.handle(new EnvdCall(exchange, sandboxes, caller(exchange, sandbox.get()), sandbox.get()));
  }

  private void checkSignature(Exchange exchange, Sandbox sandbox) {
    if (exchange.query().one("signature").isEmpty()) {
      throw new E2bError(401, "missing signature query parameter");
    }
    SignedUrl url = signedUrl(exchange);
    if (!access.signedFor(sandbox.id(), url)) {
      throw new E2bError(401, "invalid signature");
    }
    if (EnvdAccess.expired(url, clock.instant())) {
      throw new E2bError(401, "signature is already expired");
    }
  }

  private static SignedUrl signedUrl(Exchange exchange) {
    return new SignedUrl(
        exchange.query().one("path").orElse(""),
        exchange.method().equals("POST") ? "write" : "read",
        exchange.query().one("username").orElse(""),
        exchange.query().one("signature").orElse(""),
        exchange.query().one("signature_expiration").filter(e -> !e.isEmpty()));
  }

  private static Caller caller(Exchange exchange, Sandbox sandbox) {
    return new Caller(sandbox.project(), KEY_ID, exchange.requestId());
  }

  /// Who calls the control plane.
  Caller authenticate(Exchange exchange) {
    Optional<String> key =
        exchange
            .header("X-API-KEY")
            .or(
                () ->
                    exchange
                        .header("Authorization")
                        .filter(h -> h.regionMatches(true, 0, "Bearer ", 0, 7))
                        .map(h -> h.substring(7).strip()));
    if (key.isEmpty()) {
      throw new E2bError(401, "Missing API key: send it in the X-API-KEY header");
    }
    try {
      return keys.authenticate(key.get(), exchange.requestId());
    } catch (SpaceException e) {
      if (e.code() == ErrorCode.UNAUTHENTICATED) {
        throw new E2bError(401, "Invalid API key");
      }
      throw e;
    }
  }
}
