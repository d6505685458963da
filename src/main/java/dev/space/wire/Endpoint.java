package dev.space.wire;

import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.URI;
import java.net.UnixDomainSocketAddress;
import java.nio.file.Path;

/// Where an HTTP server listens.
public sealed interface Endpoint {

  /// A TCP port.
  ///
  /// @param host name or address; IPv6 without brackets
  record Tcp(String host, int port) implements Endpoint {
    @Override
    public String authority() {
      return (host.indexOf(':') >= 0 ? "[" + host + "]" : host) + ":" + port;
    }

    @Override
    public SocketAddress address() {
      return new InetSocketAddress(host, port);
    }

    @Override
    public String toString() {
      return "http://" + authority();
    }
  }

  /// A unix socket.
  ///
  /// @param path below 108 bytes, the kernel's limit
  record Unix(Path path) implements Endpoint {
    @Override
    public String authority() {
      return "localhost";
    }

    @Override
    public SocketAddress address() {
      return UnixDomainSocketAddress.of(path);
    }

    @Override
    public String toString() {
      return "unix:" + path;
    }
  }

  /// The value of the Host header.
  String authority();

  /// The address to connect to; resolving a name may block.
  SocketAddress address();

  /// Reads `http://host:port`, with or without a path after it.
  ///
  /// @throws IllegalArgumentException when it is no such URL
  static Tcp ofUrl(String url) {
    URI uri = URI.create(url);
    String host = uri.getHost();
    if (!"http".equals(uri.getScheme()) || host == null) {
      throw new IllegalArgumentException("'" + url + "' is not a URL like http://127.0.0.1:8700");
    }
    if (host.startsWith("[")) {
      host = host.substring(1, host.length() - 1);
    }
    return new Tcp(host, uri.getPort() < 0 ? 80 : uri.getPort());
  }
}
