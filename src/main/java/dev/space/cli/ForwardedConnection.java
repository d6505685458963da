package dev.space.cli;

import dev.space.core.error.Problem;
import dev.space.wire.Headers;
import dev.space.wire.RawConnection;
import dev.space.wire.RefusedException;
import dev.space.wire.WireClient;
import dev.space.wire.WireException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.time.Duration;
import java.util.function.Consumer;

/// One local connection joined to a port of a sandbox, byte by byte, with the half-closes of both
/// sides.
final class ForwardedConnection {

  private static final int BUFFER_BYTES = 64 * 1024;

  /// How long this side may go on sending after the port has closed.
  private static final Duration HALF_CLOSED_MAX = Duration.ofMinutes(1);

  private final Socket client;
  private final WireClient service;
  private final String target;
  private final String key;
  private final Consumer<Problem> refused;

  /// @param target path of the port
  /// @param refused is told why a connection could not be made; it is closed then
  ForwardedConnection(
      Socket client, WireClient service, String target, String key, Consumer<Problem> refused) {
    this.client = client;
    this.service = service;
    this.target = target;
    this.key = key;
    this.refused = refused;
  }

  void carry() {
    try (client) {
      RawConnection made;
      try {
        made = service.upgrade(target, "tcp", Headers.NONE.with("Authorization", "Bearer " + key));
      } catch (RefusedException e) {
        refused.accept(Api.problem(e.status(), e.body()));
        return;
      } catch (WireException e) {
        refused.accept(Api.failure(service.endpoint(), e).problem());
        return;
      }
      try (RawConnection port = made) {
        client.setTcpNoDelay(true);
        Thread up = Thread.ofVirtual().name("forward-up").start(() -> up(port));
        down(port.in(), client.getOutputStream());
        client.shutdownOutput();
        up.join(HALF_CLOSED_MAX);
      }
    } catch (IOException e) {
      // One side is gone; closing both tells the other.
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void up(RawConnection port) {
    byte[] buffer = new byte[BUFFER_BYTES];
    try {
      InputStream in = client.getInputStream();
      for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
        port.write(buffer, 0, n);
      }
      port.endWriting();
    } catch (IOException e) {
      port.close();
    }
  }

  private static void down(InputStream in, OutputStream out) throws IOException {
    byte[] buffer = new byte[BUFFER_BYTES];
    for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
      out.write(buffer, 0, n);
    }
  }
}
