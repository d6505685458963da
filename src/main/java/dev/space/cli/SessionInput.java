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
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /// Sends a piece, again when the connection breaks: by its place the server knows what it has.
  private void send(long offset, byte[] bytes, boolean last) throws InterruptedException {
    String base = Api.target(url) + "/stdin?offset=" + offset + (last ? "&eof=true" : "");
    WireRequest request =
        WireRequest.of("POST", base)
            .header("Authorization", "Bearer " + token)
            .header("Content-Type", "application/octet-stream")
            .body(new WireRequest.Body.Bytes(bytes))
            .within(PIECE_TIME);
    Retries retries = new Retries();
    boolean sent = false;
    while (!sent) {
      try {
        Api.openAt(url, request).close();
        sent = true;
      } catch (SpaceException e) {
        if (!retries.again(e, false)) {
          throw e;
        }
      }
    }
  }
}
