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
  private static final List<String> FIRST = List.of("echo");

  /// What programs most often begin with.
  private static final List<String> FAMILIAR =
      List.of(
          "/bin/sh",
          "-c",
          "exec >/dev/null 2>&1; /bin/echo; bash -c :; ls; cat /dev/null; env; id; python3 -c pass; :");

  private static final int REHEARSALS = 4;

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

  /// Makes the guest do what first commands make it do, as its default user: what they read and
  /// remember is then in the memory that is frozen. What an image doesn't have is no error.
  static void acquaint(Guest guest) {
    exercise(guest, FAMILIAR, 1);
  }

  /// Makes a guest that goes on as it is do what its owner's first command will make it do, and
  /// that more than once: an emulator translates code when it first runs, and links it up later.
  static void rehearse(Guest guest) {
    exercise(guest, FIRST, REHEARSALS);
  }

  private static void exercise(Guest guest, List<String> argv, int times) {
    try {
      for (int i = 0; i < times; i++) {
        run(guest, "first-" + i, argv);
      }
    } catch (SpaceException e) {
      log.debug("The guest was not exercised: {}", e.getMessage());
    }
  }
}
