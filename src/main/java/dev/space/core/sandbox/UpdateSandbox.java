package dev.space.core.sandbox;

import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// Changes to a sandbox's record. What is absent stays.
///
/// @param timeout counted from now; zero takes the timeout away
/// @param metadata replaces the whole map
/// @param publicPorts replaces the whole set
public record UpdateSandbox(
    Optional<Duration> timeout,
    Optional<OnTimeout> onTimeout,
    Optional<Duration> idleTimeout,
    Optional<Boolean> autoWake,
    Optional<Map<String, String>> metadata,
    Optional<Set<Integer>> publicPorts) {

  /// A change of the timeout alone.
  public static UpdateSandbox ofTimeout(Duration timeout) {
    return new UpdateSandbox(
        Optional.of(timeout),
        Optional.empty(),
        Optional.empty(),
        Optional.empty(),
        Optional.empty());
  }

  /// A change that leaves the public ports as they are.
  public UpdateSandbox(
      Optional<Duration> timeout,
      Optional<OnTimeout> onTimeout,
      Optional<Duration> idleTimeout,
      Optional<Boolean> autoWake,
      Optional<Map<String, String>> metadata) {
    this(timeout, onTimeout, idleTimeout, autoWake, metadata, Optional.empty());
  }
}
