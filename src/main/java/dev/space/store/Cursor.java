package dev.space.store;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.store.Page;
import java.time.Instant;
import java.util.Base64;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/// A place in a list that is ordered by creation and id, newest first. What is inserted or deleted
/// meanwhile never shifts what follows it.
record Cursor(Instant at, String id) {

  /// Rows a page holds at most.
  static final int LIMIT_MAX = 1000;

  /// Condition on rows that follow the cursor `:at`, `:after`; all rows when `:at` is null.
  static String follows(String idColumn) {
    return "(:at IS NULL OR created_at < :at OR (created_at = :at AND " + idColumn + " < :after))";
  }

  static Cursor parse(String text) {
    try {
      String plain = new String(Base64.getUrlDecoder().decode(text), UTF_8);
      int colon = plain.indexOf(':');
      return new Cursor(
          Instant.ofEpochMilli(Long.parseLong(plain.substring(0, Math.max(0, colon)))),
          plain.substring(colon + 1));
    } catch (IllegalArgumentException e) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "cursor is not one that a list gave out")
          .remedy("Pass the cursor of the page before unchanged, or none to start over.")
          .toException(e);
    }
  }

  String text() {
    byte[] plain = (at.toEpochMilli() + ":" + id).getBytes(UTF_8);
    return Base64.getUrlEncoder().withoutPadding().encodeToString(plain);
  }

  static int checkLimit(int limit) {
    if (limit < 1 || limit > LIMIT_MAX) {
      throw Problem.of(
              ErrorCode.INVALID_REQUEST, "limit must be 1 to " + LIMIT_MAX + ", not " + limit)
          .toException();
    }
    return limit;
  }

  /// A page of the rows that were read, one more than it may hold.
  static <T> Page<T> page(List<T> rows, int limit, Function<T, Cursor> place) {
    if (rows.size() <= limit) {
      return new Page<>(List.copyOf(rows), Optional.empty());
    }
    List<T> items = List.copyOf(rows.subList(0, limit));
    return new Page<>(items, Optional.of(place.apply(items.getLast()).text()));
  }
}
