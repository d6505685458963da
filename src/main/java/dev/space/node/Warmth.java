package dev.space.node;

import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessSpec;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Commands the node itself runs in guests that nobody owns yet.
final class Warmth {

  private static final Logger log = LoggerFactory.getLogger(Warmth.class);
  private static final List<String> FIRST = List.of("/bin/sh", "-c", ":");

  private Warmth() {}

  /// Runs a command to its end and forgets it.
  ///
  /// @return its status, -1 when a signal ended it
  static int run(Guest guest, String id, List<String> argv) {
    AtomicInteger status = new AtomicInteger(-1);
    guest.run(
        ProcessSpec.of(id, argv),
        0,
        event -> {
          if (event instanceof OutputEvent.Exited exited) {
            status.set(exited.exit().code());
          }
        });
    guest.release(id);
    return status.get();
  }

  /// Makes the guest do once what a first command makes it do, so that the owner's first command
  /// finds it done. An image without a shell has no use for it, which is no error.
  static void exercise(Guest guest) {
    try {
      run(guest, "first", FIRST);
    } catch (SpaceException e) {
      log.debug("The guest was not exercised: {}", e.getMessage());
    }
  }
}
