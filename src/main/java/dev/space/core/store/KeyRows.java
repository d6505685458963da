package dev.space.core.store;

import dev.space.core.access.StoredKey;
import java.time.Instant;
import java.util.List;
import java.util.Optional;

/// API keys.
public interface KeyRows {

  void insert(StoredKey key);

  /// The key whose SHA-256 this is, revoked or not.
  Optional<StoredKey> byHash(String hash);

  List<StoredKey> list(String project);

  /// Whether there is any key at all.
  boolean any();

  /// Whether the project had such a key that was not revoked yet.
  boolean revoke(String project, String id, Instant at);
}
