package dev.space.core.operation;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.store.IdempotencyRows.Used;
import dev.space.core.store.Tx;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.regex.Pattern;

/// Remembers which answer an idempotency key led to, within the transaction of the call itself.
public final class Idempotency {

  /// How long a key is remembered.
  public static final Duration KEPT = Duration.ofHours(24);

  private static final Pattern KEY = Pattern.compile("[\\x21-\\x7e]{1,255}");

  private Idempotency() {}

  /// The id of the operation or session that was the answer to this key before.
  ///
  /// @throws dev.space.core.error.SpaceException IDEMPOTENCY_MISMATCH when the key was used for
  ///   another request, INVALID_REQUEST when it is none
  public static Optional<String> answered(
      Tx tx, String project, Optional<IdempotencyKey> key, Instant now) {
    if (key.isEmpty()) {
      return Optional.empty();
    }
    IdempotencyKey asked = key.get();
    if (!KEY.matcher(asked.key()).matches()) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "The Idempotency-Key is not valid")
          .remedy("Use 1 to 255 printable ASCII characters without spaces.")
          .toException();
    }
    Optional<Used> used =
        tx.idempotency().find(project, asked.key()).filter(u -> u.at().plus(KEPT).isAfter(now));
    if (used.isPresent() && !used.get().fingerprint().equals(asked.fingerprint())) {
      throw Problem.of(
              ErrorCode.IDEMPOTENCY_MISMATCH,
              "Idempotency-Key was used for another request within 24 hours")
          .remedy("Use a new key for a new request; repeat a request with its own key.")
          .toException();
    }
    return used.map(Used::resultId);
  }

  /// Remembers the answer to a key.
  public static void remember(
      Tx tx, String project, Optional<IdempotencyKey> key, String resultId, Instant now) {
    key.ifPresent(k -> tx.idempotency().put(project, k, resultId, now));
  }
}
