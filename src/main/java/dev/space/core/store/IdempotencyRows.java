package dev.space.core.store;

import dev.space.core.operation.IdempotencyKey;
import java.time.Instant;
import java.util.Optional;

/// Which answer an idempotency key led to.
public interface IdempotencyRows {

  /// @param fingerprint of the request that used the key first
  /// @param resultId the operation or session that was its answer
  record Used(String fingerprint, String resultId, Instant at) {}

  Optional<Used> find(String project, String key);

  /// Records the use of a key, in place of an older one.
  void put(String project, IdempotencyKey key, String resultId, Instant at);

  int purgeBefore(Instant instant);
}
