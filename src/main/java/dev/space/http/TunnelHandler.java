package dev.space.http;

/// Works with the raw connection after an upgrade, blocking, on its own virtual thread. Its return
/// closes the connection.
@FunctionalInterface
public interface TunnelHandler {
  void run(Tunnel tunnel) throws Exception;
}
