package dev.space.api;

import dev.space.core.access.ApiKeys;
import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.http.Exchange;
import dev.space.http.Handler;
import java.util.Optional;

/// Lets in only those who show an API key, as `Authorization: Bearer` or `X-API-Key`.
public final class Doors {
  private static final String BEARER = "Bearer ";

  private final ApiKeys keys;

  public Doors(ApiKeys keys) {
    this.keys = keys;
  }

  /// A handler that knows who calls.
  @FunctionalInterface
  public interface Known {
    void handle(Exchange exchange, Caller caller) throws Exception;
  }

  public Handler keyed(Known handler) {
    return exchange -> handler.handle(exchange, caller(exchange));
  }

  /// Who calls.
  ///
  /// @throws dev.space.core.error.SpaceException UNAUTHENTICATED
  public Caller caller(Exchange exchange) {
    exchange.errorHeader("WWW-Authenticate", "Bearer");
    String key =
        presented(exchange)
            .orElseThrow(
                () ->
                    Problem.of(ErrorCode.UNAUTHENTICATED, "The request carries no API key")
                        .remedy("Send Authorization: Bearer <key>, or X-API-Key: <key>.")
                        .toException());
    Caller caller = keys.authenticate(key, exchange.requestId());
    exchange.clearErrorHeader("WWW-Authenticate");
    return caller;
  }

  private static Optional<String> presented(Exchange exchange) {
    Optional<String> authorization =
        exchange
            .header("Authorization")
            .filter(value -> value.regionMatches(true, 0, BEARER, 0, BEARER.length()))
            .map(value -> value.substring(BEARER.length()).strip());
    return authorization.or(() -> exchange.header("X-API-Key"));
  }
}
