package dev.space.http;

import java.net.InetSocketAddress;
import java.util.Optional;

/// One address the server listens on, with what answers there.
///
/// @param name for logs, metrics and [HttpServer#address]
/// @param address port 0 takes any free port
/// @param errors how errors look there
/// @param tls HTTPS instead of clear text, HTTP/2 by ALPN
public record HttpListener(
    String name,
    InetSocketAddress address,
    Handler handler,
    ErrorRenderer errors,
    Optional<Tls> tls) {

  public HttpListener(String name, InetSocketAddress address, Handler handler) {
    this(name, address, handler, ErrorRenderer.PROBLEM_JSON, Optional.empty());
  }
}
