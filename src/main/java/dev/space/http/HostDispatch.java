package dev.space.http;

import java.util.Locale;
import java.util.Optional;
import java.util.function.Function;

/// Chooses who answers by the Host header: names such as `8080-id.sandbox.example` go one way, all
/// others the other.
public final class HostDispatch implements Handler {
  private final Function<String, Optional<Handler>> byHost;
  private final Handler otherwise;

  /// @param byHost gets the host's name in lower case, without its port
  public HostDispatch(Function<String, Optional<Handler>> byHost, Handler otherwise) {
    this.byHost = byHost;
    this.otherwise = otherwise;
  }

  @Override
  public void handle(Exchange exchange) throws Exception {
    exchange.host().map(HostDispatch::name).flatMap(byHost).orElse(otherwise).handle(exchange);
  }

  private static String name(String host) {
    int colon = host.lastIndexOf(':');
    String name = colon >= 0 && !host.endsWith("]") ? host.substring(0, colon) : host;
    return name.toLowerCase(Locale.ROOT);
  }
}
