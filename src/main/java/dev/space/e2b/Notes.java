package dev.space.e2b;

import dev.space.core.sandbox.Sandbox;
import java.time.DateTimeException;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;

/// What E2B knows of a sandbox beyond what SPACE records. It is kept in the sandbox's metadata
/// under names that E2B programs can't use and never see.
final class Notes {

  private static final String PREFIX = "space.e2b/";
  private static final String INSECURE = PREFIX + "insecure";
  private static final String PRIVATE_PORTS = PREFIX + "private-ports";
  private static final String NETWORK = PREFIX + "network";
  private static final String TIMEOUT = PREFIX + "timeout";

  private Notes() {}

  /// @param insecure whether it has no tokens
  /// @param privatePorts whether its ports ask for a token
  /// @param network the network settings as they were given, JSON
  /// @param timeout of the create, kept for what traffic may wake
  record Settings(
      boolean insecure,
      boolean privatePorts,
      Optional<String> network,
      Optional<Duration> timeout) {}

  /// The metadata to record: the caller's and the notes.
  static Map<String, String> with(Map<String, String> metadata, Settings settings) {
    Map<String, String> all = new LinkedHashMap<>();
    metadata.forEach(
        (key, value) -> {
          if (key.startsWith(PREFIX)) {
            throw new E2bError(400, "metadata keys must not begin with '" + PREFIX + "'");
          }
          all.put(key, value);
        });
    if (settings.insecure()) {
      all.put(INSECURE, "true");
    }
    if (settings.privatePorts()) {
      all.put(PRIVATE_PORTS, "true");
    }
    settings.network().ifPresent(n -> all.put(NETWORK, n));
    settings.timeout().ifPresent(t -> all.put(TIMEOUT, t.toString()));
    return all;
  }

  static Settings of(Sandbox sandbox) {
    Map<String, String> metadata = sandbox.metadata();
    return new Settings(
        metadata.containsKey(INSECURE),
        metadata.containsKey(PRIVATE_PORTS),
        Optional.ofNullable(metadata.get(NETWORK)),
        Optional.ofNullable(metadata.get(TIMEOUT)).flatMap(Notes::duration));
  }

  /// Whoever uses the native API may write what he likes.
  private static Optional<Duration> duration(String text) {
    try {
      return Optional.of(Duration.parse(text)).filter(Duration::isPositive);
    } catch (DateTimeException _) {
      return Optional.empty();
    }
  }

  /// The metadata as the caller gave it.
  static Map<String, String> visible(Sandbox sandbox) {
    Map<String, String> own = new LinkedHashMap<>(sandbox.metadata());
    own.keySet().removeIf(key -> key.startsWith(PREFIX));
    return own;
  }
}
