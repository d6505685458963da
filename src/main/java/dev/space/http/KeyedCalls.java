package dev.space.http;

import dev.space.core.access.ApiKeys;
import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.util.Optional;

/// Who calls, by the API key that a request shows: `X-API-Key`, or else `Authorization: Bearer`,
/// which on a way to a server in a sandbox may be meant for that one.
public final class KeyedCalls {

  private static final String BEARER = "Bearer ";

  private final ApiKeys keys;

  public KeyedCalls(ApiKeys keys) {
    this.keys = keys;
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
    return exchange
        .header("X-API-Key")
        .or(
            () ->
                exchange
                    .header("Authorization")
                    .filter(value -> value.regionMatches(true, 0, BEARER, 0, BEARER.length()))
                    .map(value -> value.substring(BEARER.length()).strip()));
  }
}
