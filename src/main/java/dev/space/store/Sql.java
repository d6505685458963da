package dev.space.store;

import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import org.jdbi.v3.core.Handle;
import org.jdbi.v3.core.statement.Query;
import org.jdbi.v3.core.statement.SqlStatement;
import org.jdbi.v3.core.statement.Update;
import org.jspecify.annotations.Nullable;

/// Statements of one transaction.
record Sql(Handle handle) {

  /// Makes a value of a row.
  @FunctionalInterface
  interface Reader<T> {
    T read(Row row) throws SQLException;
  }

  /// Binds values of the domain's types to a statement.
  static <S extends SqlStatement<S>> S bind(S statement, String name, @Nullable Object value) {
    return switch (value) {
      case null -> statement.bind(name, (String) null);
      case Optional<?> optional -> bind(statement, name, optional.orElse(null));
      case Instant instant -> statement.bind(name, instant.toEpochMilli());
      case Duration duration -> statement.bind(name, duration.toMillis());
      case Enum<?> constant -> statement.bind(name, constant.name());
      case Boolean flag -> statement.bind(name, flag ? 1 : 0);
      case Integer number -> statement.bind(name, number);
      case Long number -> statement.bind(name, number);
      case String text -> statement.bind(name, text);
      default -> throw new IllegalArgumentException("cannot store a " + value.getClass());
    };
  }

  /// Runs a change; `values` are names and values in turn.
  int change(String sql, @Nullable Object... values) {
    try (Update update = handle.createUpdate(sql)) {
      return bindAll(update, values).execute();
    }
  }

  /// Runs a compare-and-set.
  void changeOne(String what, String sql, @Nullable Object... values) {
    if (change(sql, values) != 1) {
      throw new StaleRow(what);
    }
  }

  <T> List<T> all(String sql, Reader<T> reader, @Nullable Object... values) {
    try (Query query = handle.createQuery(sql)) {
      return bindAll(query, values).map((set, context) -> reader.read(new Row(set))).list();
    }
  }

  <T> Optional<T> one(String sql, Reader<T> reader, @Nullable Object... values) {
    List<T> found = all(sql, reader, values);
    return found.isEmpty() ? Optional.empty() : Optional.of(found.getFirst());
  }

  boolean any(String sql, @Nullable Object... values) {
    return one(sql, row -> 1, values).isPresent();
  }

  /// The next number of a counter. Its row stays locked until the transaction ends, so numbers are
  /// committed in their order.
  long count(String counter) {
    return one(
            "UPDATE counters SET value = value + 1 WHERE name = :name RETURNING value",
            row -> row.big("value"),
            "name",
            counter)
        .orElseThrow();
  }

  private static <S extends SqlStatement<S>> S bindAll(S statement, @Nullable Object... values) {
    for (int i = 0; i < values.length; i += 2) {
      bind(statement, String.valueOf(values[i]), values[i + 1]);
    }
    return statement;
  }
}
