package dev.space.dataplane;

import dev.space.core.access.ApiKeys;
import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.Guest;
import dev.space.core.session.SessionHost;
import dev.space.http.Exchange;
import dev.space.http.Handler;
import java.util.Optional;

/// Lets in who shows an API key, to the sandbox that the path names. The sandbox is in use, and was
/// woken if it is to be, while the call lasts.
final class Doors {

  private static final String BEARER = "Bearer ";

  private final ApiKeys keys;
  private final SessionHost host;

  Doors(ApiKeys keys, SessionHost host) {
    this.keys = keys;
    this.host = host;
  }

  /// A handler of a call on a running sandbox.
  @FunctionalInterface
  interface OnGuest {
    void handle(Exchange exchange, Guest guest) throws Exception;
  }

  Handler onGuest(OnGuest handler) {
    return exchange -> {
      Caller caller = caller(exchange);
      try (var use = host.use(caller, exchange.pathVariable("id"))) {
        handler.handle(exchange, use.guest());
      }
    };
  }

  SessionHost host() {
    return host;
  }

  /// Who calls.
  ///
  /// @throws dev.space.core.error.SpaceException UNAUTHENTICATED
  Caller caller(Exchange exchange) {
    Optional<String> key = presented(exchange);
    if (key.isEmpty()) {
      exchange.errorHeader("WWW-Authenticate", "Bearer");
      throw Problem.of(ErrorCode.UNAUTHENTICATED, "The request carries no API key.")
          .remedy("Send Authorization: Bearer <key>, or X-API-Key: <key>.")
          .toException();
    }
    return keys.authenticate(key.get(), exchange.requestId());
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
