package dev.space.http;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/// Finds the route of a request. Literal segments win over variables, variables over tails. Paths
/// are exact: a trailing slash is another path, which no route has unless it ends in a tail. `HEAD`
/// is answered by the `GET` route, `OPTIONS` with what is allowed.
public final class Router implements Handler {
  private static final int SEGMENTS_MAX = 256;

  private final Node root;
  private final List<Route> routes;

  private Router(Node root, List<Route> routes) {
    this.root = root;
    this.routes = routes;
  }

  public static Builder builder() {
    return new Builder();
  }

  /// All routes, in the order they were given.
  public List<Route> routes() {
    return routes;
  }

  @Override
  public void handle(Exchange exchange) throws Exception {
    String path = exchange.rawPath();
    String[] segments = path.startsWith("/") ? path.substring(1).split("/", -1) : new String[0];
    if (segments.length == 0 || segments.length > SEGMENTS_MAX) {
      throw notFound(path);
    }
    Node node = find(root, segments, 0);
    if (node == null) {
      throw notFound(path);
    }
    Route route = route(node, exchange);
    if (route == null) {
      return;
    }
    exchange.matched(route.template(), named(route, segments));
    route.handler().handle(exchange);
  }

  private static @Nullable Route route(Node node, Exchange exchange) {
    String method = exchange.method();
    Route route = node.routes.get(method);
    if (route == null && method.equals("HEAD")) {
      route = node.routes.get("GET");
    }
    if (route == null) {
      route = node.routes.get(Route.ANY);
    }
    if (route != null) {
      return route;
    }
    var allowed = new TreeSet<>(node.routes.keySet());
    if (allowed.contains("GET")) {
      allowed.add("HEAD");
    }
    allowed.add("OPTIONS");
    String allow = String.join(", ", allowed);
    exchange.errorHeader("Allow", allow);
    if (method.equals("OPTIONS")) {
      exchange.status(204).sendEmpty();
      return null;
    }
    throw Problem.of(
            ErrorCode.METHOD_NOT_ALLOWED,
            "The method " + Shown.of(method) + " is not allowed on this path")
        .remedy("Use one of: " + allow + ".")
        .toException();
  }

  private static @Nullable Node find(Node node, String[] segments, int at) {
    if (at == segments.length) {
      return node.routes.isEmpty() ? null : node;
    }
    Node literal = node.literals.get(segments[at]);
    if (literal != null) {
      Node found = find(literal, segments, at + 1);
      if (found != null) {
        return found;
      }
    }
    if (node.variable != null && !segments[at].isEmpty()) {
      Node found = find(node.variable, segments, at + 1);
      if (found != null) {
        return found;
      }
    }
    return node.tail;
  }

  private static Map<String, String> named(Route route, String[] segments) {
    String[] template = route.template().substring(1).split("/", -1);
    var named = new HashMap<String, String>();
    for (int i = 0; i < template.length; i++) {
      String part = template[i];
      if (isTail(part)) {
        var rest = new ArrayList<String>();
        for (int j = i; j < segments.length; j++) {
          rest.add(segments[j]);
        }
        named.put(part.substring(1, part.length() - 4), String.join("/", rest));
      } else if (isVariable(part)) {
        named.put(
            part.substring(1, part.length() - 1),
            PercentCoding.decode(segments[i], false, "the path"));
      }
    }
    return named;
  }

  private static SpaceException notFound(String path) {
    boolean slash = path.length() > 1 && path.endsWith("/");
    return Problem.of(ErrorCode.NOT_FOUND, "There is nothing at " + Shown.of(path))
        .remedy(
            slash
                ? "Leave the trailing slash out; the calls are in /openapi.yaml."
                : "The calls are in /openapi.yaml.")
        .toException();
  }

  private static boolean isVariable(String part) {
    return part.startsWith("{") && part.endsWith("}");
  }

  private static boolean isTail(String part) {
    return isVariable(part) && part.endsWith("...}");
  }

  private static final class Node {
    final Map<String, Node> literals = new HashMap<>();
    final Map<String, Route> routes = new HashMap<>();
    @Nullable Node variable;
    @Nullable Node tail;
  }

  /// Collects routes. A route that is there twice is a defect and refused.
  public static final class Builder {
    private final Node root = new Node();
    private final List<Route> routes = new ArrayList<>();

    private Builder() {}

    public Builder get(String template, Handler handler) {
      return add(new Route("GET", template, handler));
    }

    public Builder post(String template, Handler handler) {
      return add(new Route("POST", template, handler));
    }

    public Builder put(String template, Handler handler) {
      return add(new Route("PUT", template, handler));
    }

    public Builder patch(String template, Handler handler) {
      return add(new Route("PATCH", template, handler));
    }

    public Builder delete(String template, Handler handler) {
      return add(new Route("DELETE", template, handler));
    }

    /// Every method that has no route of its own.
    public Builder any(String template, Handler handler) {
      return add(new Route(Route.ANY, template, handler));
    }

    /// All routes of another router.
    public Builder include(Router other) {
      other.routes().forEach(this::add);
      return this;
    }

    public Builder add(Route route) {
      if (!route.template().startsWith("/")) {
        throw defect(route, "does not begin with a slash");
      }
      Node node = root;
      String[] parts = route.template().substring(1).split("/", -1);
      for (int i = 0; i < parts.length; i++) {
        String part = parts[i];
        if (isTail(part)) {
          if (i != parts.length - 1) {
            throw defect(route, "has a tail before its end");
          }
          node.tail = Optional.ofNullable(node.tail).orElseGet(Node::new);
          node = node.tail;
        } else if (isVariable(part)) {
          node.variable = Optional.ofNullable(node.variable).orElseGet(Node::new);
          node = node.variable;
        } else {
          node = node.literals.computeIfAbsent(part, _ -> new Node());
        }
      }
      if (node.routes.putIfAbsent(route.method(), route) != null) {
        throw defect(route, "is there twice");
      }
      routes.add(route);
      return this;
    }

    public Router build() {
      return new Router(root, List.copyOf(routes));
    }

    private static SpaceException defect(Route route, String what) {
      return Problem.of(
              ErrorCode.INTERNAL,
              "The route " + route.method() + " " + route.template() + " " + what)
          .toException();
    }
  }
}
