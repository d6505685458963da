package dev.space.dataplane;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.sandbox.Sandbox;
import dev.space.http.Exchange;
import dev.space.http.Handler;
import dev.space.http.Json;
import dev.space.http.Router;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Ports of a sandbox: `/v1/sandboxes/{id}/ports/{port}/…` and `{port}-{id}.{domain}`; without the
/// slash and with `Upgrade: tcp`, the port's raw bytes. Private unless the sandbox says otherwise:
/// to be let in takes an API key or a token of that port, which comes as a header, in the query
/// once (answered with a cookie), as that cookie, or as a subprotocol of a web socket.
final class PortHandlers {

  static final String TOKEN_HEADER = "X-Space-Port-Token";
  static final String TOKEN_NAME = "space_port_token";

  /// What a client upgrades to for the raw bytes of a port.
  static final String TCP = "tcp";

  static final String SUBPROTOCOL = "space.token.";

  private static final String PATH = "/v1/sandboxes/{id}/ports/{port}";
  private static final String KEY_PREFIX = "e2b_";
  private static final int PORT_MAX = 65_535;
  private static final int BODY_BYTES_MAX = 4096;
  private static final Duration TOKEN_LIFE = Duration.ofHours(1);
  private static final Duration TOKEN_LIFE_MAX = Duration.ofDays(7);
  private static final Pattern HOST = Pattern.compile("([0-9]{1,5})-([a-z0-9]{1,64})");

  private final Doors doors;
  private final PortTokens tokens;
  private final InstantSource clock;

  PortHandlers(Doors doors, PortTokens tokens, InstantSource clock) {
    this.doors = doors;
    this.tokens = tokens;
    this.clock = clock;
  }

  void addTo(Router.Builder routes) {
    routes
        .any(PATH, this::bare)
        .any(PATH + "/{path...}", this::byPath)
        .post("/v1/sandboxes/{id}/port-tokens", this::makeToken);
  }

  /// Who answers for a host name below the domain of ports.
  Optional<Handler> byHost(String host, String domain) {
    if (!host.endsWith("." + domain)) {
      return Optional.empty();
    }
    Matcher label = HOST.matcher(host.substring(0, host.length() - domain.length() - 1));
    if (!label.matches()) {
      return Optional.empty();
    }
    int port = port(label.group(1));
    String id = label.group(2);
    return Optional.of(exchange -> pass(exchange, id, port, exchange.rawPath(), ""));
  }

  private void bare(Exchange exchange) throws Exception {
    if (exchange.wantsUpgrade(TCP)) {
      tunnel(exchange);
    } else {
      toSlash(exchange);
    }
  }

  private void tunnel(Exchange exchange) throws Exception {
    exchange.query().allow();
    String id = exchange.pathVariable("id");
    int port = port(exchange.pathVariable("port"));
    Caller caller = caller(exchange, id, port, Optional.empty());
    var use = doors.host().use(caller, id);
    boolean passed = false;
    try {
      Guest.Tunnel server = PortRelay.connect(use.guest(), port);
      try {
        exchange.tunnel(
            List.of(Map.entry("Connection", "Upgrade"), Map.entry("Upgrade", TCP)),
            client -> PortRelay.run(client, server, server.in(), use));
        passed = true;
      } finally {
        if (!passed) {
          server.close();
        }
      }
    } finally {
      if (!passed) {
        use.close();
      }
    }
  }

  private static void toSlash(Exchange exchange) {
    String query = exchange.rawQuery().isEmpty() ? "" : "?" + exchange.rawQuery();
    exchange.status(308).header("Location", exchange.rawPath() + "/" + query).sendEmpty();
  }

  private void byPath(Exchange exchange) throws Exception {
    String id = exchange.pathVariable("id");
    int port = port(exchange.pathVariable("port"));
    String rest = "/" + exchange.pathVariable("path");
    String prefix = exchange.rawPath().substring(0, exchange.rawPath().length() - rest.length());
    pass(exchange, id, port, rest, prefix);
  }

  private static int port(String text) {
    int port = text.matches("[0-9]{1,5}") ? Integer.parseInt(text) : 0;
    if (port < 1 || port > PORT_MAX) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "There is no such port.")
          .remedy("Give a number from 1 to " + PORT_MAX + ".")
          .toException();
    }
    return port;
  }

  private void pass(Exchange exchange, String id, int port, String path, String prefix)
      throws Exception {
    List<String> query = new ArrayList<>();
    Optional<String> fromQuery = Optional.empty();
    for (String part : exchange.rawQuery().split("&", -1)) {
      if (part.startsWith(TOKEN_NAME + "=")) {
        fromQuery = Optional.of(part.substring(TOKEN_NAME.length() + 1));
      } else if (!part.isEmpty()) {
        query.add(part);
      }
    }
    String target = path + (query.isEmpty() ? "" : "?" + String.join("&", query));
    Caller caller = caller(exchange, id, port, fromQuery);
    boolean keep = fromQuery.filter(token -> tokens.opens(token, id, port)).isPresent();
    if (keep && exchange.method().equals("GET") && !upgrades(exchange)) {
      // Out of the address bar and the history: the cookie takes over.
      exchange
          .status(303)
          .header("Location", prefix + target)
          .header("Cache-Control", "no-store")
          .header(
              "Set-Cookie",
              TOKEN_NAME
                  + "="
                  + fromQuery.orElseThrow()
                  + "; Path="
                  + prefix
                  + "/; HttpOnly; SameSite=Lax")
          .sendEmpty();
      return;
    }
    carry(
        exchange,
        caller,
        id,
        port,
        new PortProxy.Request(
            target, prefix, withheld(exchange), cookies(exchange), subprotocols(exchange)));
  }

  /// Passes a request whose client was let in by other means, as it is but for withheld headers.
  void carry(Exchange exchange, Caller caller, String id, int port, Set<String> withheld)
      throws Exception {
    String query = exchange.rawQuery().isEmpty() ? "" : "?" + exchange.rawQuery();
    carry(
        exchange,
        caller,
        id,
        port,
        new PortProxy.Request(
            exchange.rawPath() + query, "", withheld, Optional.empty(), Optional.empty()));
  }

  private void carry(
      Exchange exchange, Caller caller, String id, int port, PortProxy.Request request)
      throws Exception {
    var use = doors.host().use(caller, id);
    boolean passed = false;
    try {
      var proxy = new PortProxy(use.guest(), port);
      passed = true;
      proxy.pass(exchange, request, use);
    } finally {
      if (!passed) {
        use.close();
      }
    }
  }

  private static boolean upgrades(Exchange exchange) {
    return exchange.header("Upgrade").filter(exchange::wantsUpgrade).isPresent();
  }

  // -- who is let in

  private Caller caller(Exchange exchange, String id, int port, Optional<String> fromQuery) {
    Optional<Sandbox> sandbox = doors.host().find(id);
    Optional<Sandbox> open = sandbox.filter(s -> s.publicPorts().contains(port));
    if (open.isPresent()) {
      return new Caller(open.get().project(), "public-port", exchange.requestId());
    }
    boolean key =
        exchange.header("X-API-Key").filter(v -> v.startsWith(KEY_PREFIX)).isPresent()
            || exchange.header("Authorization").filter(PortHandlers::isKey).isPresent();
    if (key) {
      return doors.caller(exchange);
    }
    Optional<String> token =
        exchange
            .header(TOKEN_HEADER)
            .or(() -> fromQuery)
            .or(() -> subprotocol(exchange))
            .or(() -> cookie(exchange));
    if (token.isEmpty()) {
      throw Problem.of(ErrorCode.UNAUTHENTICATED, "This port is private.")
          .remedy(
              "Send an API key, or a token of POST /v1/sandboxes/{id}/port-tokens as "
                  + TOKEN_HEADER
                  + ".")
          .toException();
    }
    tokens.check(token.get(), id, port);
    String project =
        sandbox
            .orElseThrow(
                () ->
                    Problem.of(ErrorCode.SANDBOX_NOT_FOUND, "There is no such sandbox.")
                        .remedy("It was deleted, and the token is of no more use.")
                        .toException())
            .project();
    return new Caller(project, "port-token", exchange.requestId());
  }

  private static boolean isKey(String authorization) {
    String start = "Bearer " + KEY_PREFIX;
    return authorization.regionMatches(true, 0, start, 0, start.length());
  }

  private static Optional<String> cookie(Exchange exchange) {
    for (String one : allCookies(exchange)) {
      if (one.startsWith(TOKEN_NAME + "=")) {
        return Optional.of(one.substring(TOKEN_NAME.length() + 1));
      }
    }
    return Optional.empty();
  }

  private static List<String> allCookies(Exchange exchange) {
    var all = new ArrayList<String>();
    for (String line : exchange.headers("Cookie")) {
      for (String one : line.split(";")) {
        all.add(one.strip());
      }
    }
    return all;
  }

  private static Optional<String> subprotocol(Exchange exchange) {
    return offered(exchange).stream()
        .filter(one -> one.startsWith(SUBPROTOCOL))
        .map(one -> one.substring(SUBPROTOCOL.length()))
        .findFirst();
  }

  private static List<String> offered(Exchange exchange) {
    var all = new ArrayList<String>();
    for (String line : exchange.headers("Sec-WebSocket-Protocol")) {
      for (String one : line.split(",")) {
        all.add(one.strip());
      }
    }
    return all;
  }

  // -- what the server must not see: whatever let the client in

  private static Set<String> withheld(Exchange exchange) {
    var names = new HashSet<String>();
    names.add(TOKEN_HEADER.toLowerCase(java.util.Locale.ROOT));
    if (exchange.header("X-API-Key").filter(v -> v.startsWith(KEY_PREFIX)).isPresent()) {
      names.add("x-api-key");
    }
    if (exchange.header("Authorization").filter(PortHandlers::isKey).isPresent()) {
      names.add("authorization");
    }
    return names;
  }

  private static Optional<String> cookies(Exchange exchange) {
    if (cookie(exchange).isEmpty()) {
      return Optional.empty();
    }
    return Optional.of(
        String.join(
            "; ",
            allCookies(exchange).stream()
                .filter(one -> !one.startsWith(TOKEN_NAME + "="))
                .toList()));
  }

  private static Optional<PortProxy.Subprotocols> subprotocols(Exchange exchange) {
    return subprotocol(exchange)
        .map(
            token ->
                new PortProxy.Subprotocols(
                    offered(exchange).stream().filter(one -> !one.startsWith(SUBPROTOCOL)).toList(),
                    SUBPROTOCOL + token));
  }

  // -- tokens

  /// @param ttlSeconds how long the token is good; an hour when left out, at most a week
  record TokenRequest(int port, Optional<Long> ttlSeconds) {}

  private void makeToken(Exchange exchange) {
    exchange.query().allow();
    Caller caller = doors.caller(exchange);
    String id = exchange.pathVariable("id");
    doors.host().get(caller, id);
    var request = Json.read(exchange, TokenRequest.class, BODY_BYTES_MAX);
    int port = port(Integer.toString(request.port()));
    long ttl = request.ttlSeconds().orElse(TOKEN_LIFE.toSeconds());
    if (ttl < 1 || ttl > TOKEN_LIFE_MAX.toSeconds()) {
      throw invalidTtl();
    }
    Instant expiresAt = clock.instant().plusSeconds(ttl);
    Json.send(
        exchange,
        201,
        Map.of(
            "port", port,
            "token", tokens.sign(id, port, expiresAt),
            "expires_at", Instant.ofEpochSecond(expiresAt.getEpochSecond()).toString()));
  }

  private static SpaceException invalidTtl() {
    return Problem.of(ErrorCode.INVALID_REQUEST, "ttl_seconds is out of range.")
        .remedy("Give 1 to " + TOKEN_LIFE_MAX.toSeconds() + ".")
        .toException();
  }
}
