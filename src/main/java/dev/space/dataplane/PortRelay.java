package dev.space.dataplane;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.http.Tunnel;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/// Connections to ports of a guest, and their bytes both ways.
final class PortRelay {

  /// A server that begins to listen a moment later is reached: how often and how long it is tried.
  private static final int TRIES = 10;

  private static final long TRY_MILLIS = 50;

  /// How long a client may go on sending after the server has closed.
  private static final Duration HALF_CLOSED_MAX = Duration.ofSeconds(30);

  private PortRelay() {}

  /// Connects to a port.
  ///
  /// @throws SpaceException PORT_CLOSED when nothing listens there after half a second
  static Guest.Tunnel connect(Guest guest, int port) throws InterruptedException {
    // Nothing ever releases this: it is a wait that an interrupt ends.
    var never = new Semaphore(0);
    for (int i = 1; ; i++) {
      try {
        return guest.connect(port);
      } catch (SpaceException e) {
        if (e.code() != ErrorCode.PORT_CLOSED || i == TRIES) {
          throw e;
        }
      }
      boolean acquired = never.tryAcquire(TRY_MILLIS, TimeUnit.MILLISECONDS);
      assert !acquired;
    }
  }

  /// Carries bytes both ways until both sides have ended. Each side learns of the other's
  /// half-close as such; one that breaks breaks the other.
  ///
  /// @param use closed at the end
  static void run(Tunnel client, Guest.Tunnel server, InputStream fromServer, AutoCloseable use)
      throws Exception {
    try (use;
        server) {
      Thread up =
          Thread.ofVirtual()
              .name("port-tunnel")
              .start(
                  () -> {
                    try (OutputStream out = server.out()) {
                      Bodies.copy(client.in(), out);
                    } catch (IOException | SpaceException e) {
                      server.close();
                    }
                  });
      try (OutputStream out = client.out()) {
        Bodies.copy(fromServer, out);
      } catch (IOException | SpaceException e) {
        client.abort();
        throw e;
      } finally {
        if (!up.join(HALF_CLOSED_MAX)) {
          client.abort();
        }
      }
    }
  }
}
