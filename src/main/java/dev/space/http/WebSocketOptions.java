package dev.space.http;

import java.util.Optional;

/// @param subprotocol the one of the client's subprotocols that is accepted
/// @param messageBytesMax bound of one message from the client; a larger one closes with 1009
public record WebSocketOptions(Optional<String> subprotocol, int messageBytesMax) {
  public static final WebSocketOptions DEFAULT =
      new WebSocketOptions(Optional.empty(), 1024 * 1024);
}
