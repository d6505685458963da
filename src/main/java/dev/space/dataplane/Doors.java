package dev.space.dataplane;

import dev.space.core.access.ApiKeys;
import dev.space.core.access.Caller;
import dev.space.core.guest.Guest;
import dev.space.core.session.SessionHost;
import dev.space.http.Exchange;
import dev.space.http.Handler;
import dev.space.http.KeyedCalls;

/// Lets in who shows an API key, to the sandbox that the path names. The sandbox is in use, and was
/// woken if it is to be, while the call lasts.
final class Doors {

  private final KeyedCalls calls;
  private final SessionHost host;

  Doors(ApiKeys keys, SessionHost host) {
    this.calls = new KeyedCalls(keys);
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
    return calls.caller(exchange);
  }
}
