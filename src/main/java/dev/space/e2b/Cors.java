package dev.space.e2b;

import dev.space.http.Exchange;

/// Lets pages in browsers call: E2B's own servers allow every origin, and access goes by tokens
/// that a page must hold, never by cookies.
final class Cors {

  private Cors() {}

  static void headers(Exchange exchange) {
    exchange.header("Access-Control-Allow-Origin", "*");
    exchange.header(
        "Access-Control-Expose-Headers",
        "Connect-Protocol-Version, Connect-Content-Encoding, X-Next-Token, X-Total-Running,"
            + " Content-Disposition, Content-Range, Location");
  }

  static void preflight(Exchange exchange) {
    exchange.header("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE");
    exchange.header(
        "Access-Control-Allow-Headers",
        exchange.header("Access-Control-Request-Headers").orElse("*"));
    exchange.header("Access-Control-Max-Age", "7200");
    exchange.status(204).sendEmpty();
  }
}
