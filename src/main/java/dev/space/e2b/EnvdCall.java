package dev.space.e2b;

import dev.space.core.access.Caller;
import dev.space.core.sandbox.Sandbox;
import dev.space.core.sandbox.SandboxService;
import dev.space.http.Exchange;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.Optional;

/// One call to a sandbox's data plane whose right to enter was checked.
record EnvdCall(Exchange exchange, SandboxService sandboxes, Caller caller, Sandbox sandbox) {

  private static final Duration KEEP_ALIVE_DEFAULT = Duration.ofSeconds(90);
  private static final long KEEP_ALIVE_SECONDS_MAX = 3600;
  private static final int TIMEOUT_DIGITS_MAX = 15;

  /// Opens the sandbox for use, waking it if it may be woken.
  SandboxService.Use use() {
    return sandboxes.use(caller, sandbox.id());
  }

  /// The user named by basic authentication; its password means nothing.
  Optional<String> user() {
    return exchange
        .header("Authorization")
        .filter(h -> h.regionMatches(true, 0, "Basic ", 0, 6))
        .map(h -> decodeUser(h.substring(6).strip()))
        .filter(name -> !name.isEmpty());
  }

  private static String decodeUser(String base64) {
    try {
      String pair = new String(Base64.getDecoder().decode(base64), StandardCharsets.UTF_8);
      int colon = pair.indexOf(':');
      return colon < 0 ? pair : pair.substring(0, colon);
    } catch (IllegalArgumentException _) {
      throw new ConnectException(
          ConnectCode.UNAUTHENTICATED, "The Authorization header is not valid base64");
    }
  }

  /// The deadline of the call; for a start it is the time the process may live.
  Optional<Duration> timeout() {
    return exchange
        .header("Connect-Timeout-Ms")
        .map(String::strip)
        .filter(text -> !text.isEmpty())
        .map(
            text -> {
              if (text.length() > TIMEOUT_DIGITS_MAX
                  || !text.chars().allMatch(Character::isDigit)) {
                throw new ConnectException(
                    ConnectCode.INVALID_ARGUMENT, "Connect-Timeout-Ms is not a whole number");
              }
              return Duration.ofMillis(Long.parseLong(text));
            })
        .filter(d -> !d.isZero());
  }

  /// After how long without data a stream sends a keep-alive.
  Duration keepAlive() {
    Optional<String> header = exchange.header("Keepalive-Ping-Interval");
    if (header.isEmpty()) {
      return KEEP_ALIVE_DEFAULT;
    }
    try {
      long seconds = Long.parseLong(header.get().strip());
      return Duration.ofSeconds(Math.clamp(seconds, 1, KEEP_ALIVE_SECONDS_MAX));
    } catch (NumberFormatException _) {
      return KEEP_ALIVE_DEFAULT;
    }
  }
}
