package dev.space.vmm.qemu;

import dev.space.core.error.SpaceException;
import dev.space.host.PlainText;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.Map;

/// The end of what a guest wrote to its serial console.
///
/// QEMU keeps it in a ring of 64 KiB in its own memory: nothing that a guest writes can fill a disk
/// or block it, no thread of the daemon waits for it, and reading costs only who asks.
final class Console {

  private static final int TAIL_CHARS_MAX = 4096;
  private static final Duration DEADLINE = Duration.ofSeconds(2);

  private final Qmp qmp;
  private String tail = "";

  Console(Qmp qmp) {
    this.qmp = qmp;
  }

  /// Reading takes bytes out of the ring, so the last ones are kept here.
  synchronized String tail() {
    try {
      String base64 =
          qmp.execute(
                  "ringbuf-read",
                  Map.of(
                      "device",
                      CommandLine.CONSOLE,
                      "size",
                      CommandLine.CONSOLE_BYTES,
                      "format",
                      "base64"),
                  DEADLINE)
              .asString("");
      String all =
          tail
              + PlainText.of(
                  new String(Base64.getDecoder().decode(base64), StandardCharsets.UTF_8));
      tail = all.length() > TAIL_CHARS_MAX ? all.substring(all.length() - TAIL_CHARS_MAX) : all;
    } catch (SpaceException | IllegalArgumentException _) {
      // What was read before is the tail, then.
    }
    return tail;
  }
}
