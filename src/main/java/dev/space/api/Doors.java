package dev.space.api;

import dev.space.core.access.ApiKeys;
import dev.space.core.access.Caller;
import dev.space.http.Exchange;
import dev.space.http.Handler;
import dev.space.http.KeyedCalls;

/// Lets in only those who show an API key.
public final class Doors {

  private final KeyedCalls calls;

  public Doors(ApiKeys keys) {
    this.calls = new KeyedCalls(keys);
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
    return calls.caller(exchange);
  }
}
