package dev.space.cli;

import dev.space.core.error.SpaceException;
import dev.space.wire.WireRequest;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.Arrays;

/// Sends standard input to a session, piece by piece, each with its place in the whole.
final class SessionInput {

  private static final int PIECE_BYTES = 64 * 1024;
  private static final Duration PIECE_TIME = Duration.ofMinutes(10);

  private final InputStream in;
  private final String url;
  private final String token;

  SessionInput(InputStream in, String url, String token) {
    this.in = in;
    this.url = url;
    this.token = token;
  }

  /// Starts sending. Nothing waits for it: a command that ends has no use for more input.
  void start() {
    Thread.ofPlatform().daemon().name("stdin").start(this::pump);
  }

  private void pump() {
    byte[] piece = new byte[PIECE_BYTES];
    long offset = 0;
    try {
      for (int n = in.read(piece); n >= 0; n = in.read(piece)) {
        send(offset, Arrays.copyOf(piece, n), false);
        offset += n;
      }
      send(offset, new byte[0], true);
    } catch (IOException | SpaceException e) {
      // The session has ended or is about to end with an error of its own, which its output tells.
    }
  }

  private void send(long offset, byte[] bytes, boolean last) {
    String base = Api.target(url) + "/stdin?offset=" + offset + (last ? "&eof=true" : "");
    WireRequest request =
        WireRequest.of("POST", base)
            .header("Authorization", "Bearer " + token)
            .header("Content-Type", "application/octet-stream")
            .body(new WireRequest.Body.Bytes(bytes))
            .within(PIECE_TIME);
    Api.openAt(url, request).close();
  }
}
