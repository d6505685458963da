package dev.space.http;

/// Talks over one web socket, blocking, on its own virtual thread. Its return closes the socket.
@FunctionalInterface
public interface WebSocketHandler {
  void talk(WebSocket socket) throws Exception;
}
