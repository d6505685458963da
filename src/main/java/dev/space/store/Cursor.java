package dev.space.store;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.store.Page;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// A place in a list that is ordered by creation and id, newest first. What is inserted or deleted
/// meanwhile never shifts what follows it.
record Cursor(Instant at, String id) {

  /// Rows a page holds at most.
  static final int LIMIT_MAX = 1000;

  /// Reads a page, newest first.
  ///
  /// @param select a query with its conditions; the cursor's condition, the order and the limit are
  ///   added here
  /// @param idColumn tells rows of the same instant apart
  /// @param place of an item, for the cursor of the page after it
  /// @param limit 1 to [#LIMIT_MAX]
  /// @param values names and values in turn, of the query's own conditions
  /// @throws SpaceException INVALID_REQUEST for a limit out of bounds or a cursor that isn't one
  static <T> Page<T> page(
      Sql sql,
      String select,
      String idColumn,
      Sql.Reader<T> reader,
      Function<T, Cursor> place,
      int limit,
      Optional<String> cursor,
      @Nullable Object... values) {
    checkLimit(limit);
    StringBuilder query = new StringBuilder(select);
    List<@Nullable Object> all = new ArrayList<>();
    Collections.addAll(all, values);
    cursor
        .map(Cursor::parse)
        .ifPresent(
            after -> {
              query.append(" AND (created_at, ").append(idColumn).append(") < (:at, :after)");
              all.addAll(List.of("at", after.at(), "after", after.id()));
            });
    query.append(" ORDER BY created_at DESC, ").append(idColumn).append(" DESC LIMIT :limit");
    all.addAll(List.of("limit", limit + 1)); // one more tells whether there is another page
    List<T> rows = sql.all(query.toString(), reader, all.toArray());
    if (rows.size() <= limit) {
      return new Page<>(List.copyOf(rows), Optional.empty());
    }
    List<T> items = List.copyOf(rows.subList(0, limit));
    return new Page<>(items, Optional.of(place.apply(items.getLast()).text()));
  }

  private static Cursor parse(String text) {
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

  private String text() {
    byte[] plain = (at.toEpochMilli() + ":" + id).getBytes(UTF_8);
    return Base64.getUrlEncoder().withoutPadding().encodeToString(plain);
  }

  private static void checkLimit(int limit) {
    if (limit < 1 || limit > LIMIT_MAX) {
      throw Problem.of(
              ErrorCode.INVALID_REQUEST, "limit must be 1 to " + LIMIT_MAX + ", not " + limit)
          .remedy("Give one in that range and go on with the cursor.")
          .toException();
    }
  }
}
