package dev.space.http;

import java.util.Optional;

/// A web socket in blocking style. One thread receives; any thread sends. Pings keep an idle socket
/// open and find a client that is gone.
public interface WebSocket {

  sealed interface Message {
    record Text(String text) implements Message {}

    record Binary(byte[] bytes) implements Message {}
  }

  /// The next message; empty when the socket is closed. The client is not read from before this is
  /// called, which is its back-pressure.
  Optional<Message> receive() throws InterruptedException;

  /// Sends and waits until the message is written out.
  ///
  /// @throws ClientGoneException when it can't be
  void sendText(String text) throws ClientGoneException;

  /// Sends and waits until the message is written out.
  void sendBinary(byte[] bytes) throws ClientGoneException;

  /// Closes with a code of RFC 6455, such as 1000; waits for nothing. Closing twice is no error.
  void close(int code, String reason);

  boolean isOpen();
}
