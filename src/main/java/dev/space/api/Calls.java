package dev.space.api;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.operation.IdempotencyKey;
import dev.space.core.operation.Operation;
import dev.space.core.store.Page;
import dev.space.http.Exchange;
import dev.space.http.Json;
import dev.space.http.Shown;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.HexFormat;
import java.util.Optional;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// What many calls have in common: idempotency keys, pages, durations, accepted operations.
final class Calls {
  /// Bodies of the control plane.
  static final int BODY_BYTES_MAX = 1024 * 1024;

  static final int LIMIT_DEFAULT = 100;
  static final int LIMIT_MAX = 1000;

  private static final Pattern DURATION =
      Pattern.compile(
          "(?:(\\d{1,6})d)?(?:(\\d{1,6})h)?(?:(\\d{1,7})m)?(?:(\\d{1,9})s)?(?:(\\d{1,9})ms)?");
  private static final long[] UNIT_MILLIS = {86_400_000L, 3_600_000L, 60_000L, 1000L, 1L};

  /// Ten years: beyond it every duration is a mistake.
  private static final Duration DURATION_MAX = Duration.ofDays(3653);

  private Calls() {}

  /// The caller's `Idempotency-Key`, with a fingerprint over method, path, query and body.
  static Optional<IdempotencyKey> key(Exchange exchange, byte[] body) {
    return exchange
        .header("Idempotency-Key")
        .map(key -> new IdempotencyKey(key, fingerprint(exchange, body)));
  }

  private static String fingerprint(Exchange exchange, byte[] body) {
    try {
      MessageDigest hash = MessageDigest.getInstance("SHA-256");
      String head = exchange.method() + "\n" + exchange.rawPath() + "\n" + exchange.rawQuery();
      hash.update(head.getBytes(StandardCharsets.UTF_8));
      hash.update((byte) '\n');
      return HexFormat.of().formatHex(hash.digest(body));
    } catch (NoSuchAlgorithmException e) {
      throw Problem.of(ErrorCode.INTERNAL, "SHA-256 is missing").toException(e);
    }
  }

  /// Reads the body of a call that takes none, and refuses one.
  static byte[] noBody(Exchange exchange) {
    var _ = Json.readOrEmpty(exchange, NoFields.class, BODY_BYTES_MAX);
    return exchange.bodyBytes(BODY_BYTES_MAX);
  }

  record NoFields() {}

  static int limit(Exchange exchange) {
    return (int) exchange.query().integer("limit", LIMIT_DEFAULT, 1, LIMIT_MAX);
  }

  static Optional<String> cursor(Exchange exchange) {
    return exchange.query().one("cursor").filter(cursor -> !cursor.isEmpty());
  }

  static <T> void page(Exchange exchange, Page<T> page, Function<T, ?> json) {
    Json.send(exchange, 200, new PageJson<>(page.items().stream().map(json).toList(), page.next()));
  }

  /// Answers 202 with the operation and where to poll it.
  static void accepted(Exchange exchange, Operation operation) {
    exchange.header("Location", "/v1/operations/" + operation.id());
    Json.send(exchange, 202, OperationJson.of(operation));
  }

  /// Reads a duration such as `90s`, `1h30m` or `500ms`.
  ///
  /// @throws SpaceException INVALID_REQUEST naming the field
  static Duration duration(String field, String text) {
    Matcher parts = DURATION.matcher(text);
    if (text.isEmpty() || !parts.matches()) {
      if (!text.equals("0")) {
        throw badDuration(field, text);
      }
      return Duration.ZERO;
    }
    long millis = 0;
    for (int i = 0; i < UNIT_MILLIS.length; i++) {
      String count = parts.group(i + 1);
      millis += count == null ? 0 : Long.parseLong(count) * UNIT_MILLIS[i];
    }
    Duration duration = Duration.ofMillis(millis);
    if (duration.compareTo(DURATION_MAX) > 0) {
      throw badDuration(field, text);
    }
    return duration;
  }

  private static SpaceException badDuration(String field, String text) {
    return Problem.of(
            ErrorCode.INVALID_REQUEST,
            "'" + Shown.of(text) + "' is no duration for '" + field + "'")
        .remedy("Write numbers with units, such as 90s, 30m, 1h30m or 500ms; at most ten years.")
        .toException();
  }

  /// A duration as [#duration] reads it.
  static String text(Duration duration) {
    long millis = duration.toMillis();
    return millis % 1000 == 0 ? millis / 1000 + "s" : millis + "ms";
  }

  /// A time as RFC 3339, in milliseconds and UTC.
  static String text(Instant at) {
    return at.truncatedTo(ChronoUnit.MILLIS).toString();
  }
}
