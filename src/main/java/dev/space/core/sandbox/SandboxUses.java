package dev.space.core.sandbox;

import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/// How many uses of each sandbox are open, and when the last one ended.
final class SandboxUses {

  private record Count(int open, Instant lastUsed) {}

  private final ConcurrentHashMap<String, Count> counts = new ConcurrentHashMap<>();

  void enter(String id, Instant now) {
    counts.merge(id, new Count(1, now), (old, one) -> new Count(old.open() + 1, now));
  }

  /// Ends a use and says whether it was the last one.
  boolean leave(String id, Instant now) {
    Count left = counts.computeIfPresent(id, (key, old) -> new Count(old.open() - 1, now));
    return left != null && left.open() == 0;
  }

  boolean inUse(String id) {
    Count count = counts.get(id);
    return count != null && count.open() > 0;
  }

  /// When the sandbox was last in use; empty when it wasn't since the start of the service.
  Optional<Instant> lastUsed(String id) {
    return Optional.ofNullable(counts.get(id)).map(Count::lastUsed);
  }

  /// Forgets a sandbox that is gone.
  void forget(String id) {
    counts.remove(id);
  }
}
