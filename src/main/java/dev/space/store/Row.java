package dev.space.store;

import dev.space.core.error.Problem;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;

/// Reads one row's columns by name, in the domain's types.
record Row(ResultSet set) {

  String text(String column) throws SQLException {
    return set.getString(column);
  }

  Optional<String> optionalText(String column) throws SQLException {
    return Optional.ofNullable(set.getString(column));
  }

  int number(String column) throws SQLException {
    return set.getInt(column);
  }

  Optional<Integer> optionalNumber(String column) throws SQLException {
    int value = set.getInt(column);
    return set.wasNull() ? Optional.empty() : Optional.of(value);
  }

  long big(String column) throws SQLException {
    return set.getLong(column);
  }

  boolean flag(String column) throws SQLException {
    return set.getInt(column) != 0;
  }

  Instant instant(String column) throws SQLException {
    return Instant.ofEpochMilli(set.getLong(column));
  }

  Optional<Instant> optionalInstant(String column) throws SQLException {
    long value = set.getLong(column);
    return set.wasNull() ? Optional.empty() : Optional.of(Instant.ofEpochMilli(value));
  }

  Optional<Duration> optionalDuration(String column) throws SQLException {
    long value = set.getLong(column);
    return set.wasNull() ? Optional.empty() : Optional.of(Duration.ofMillis(value));
  }

  Optional<Problem> optionalProblem(String column) throws SQLException {
    return optionalText(column).map(json -> Json.read(json, Problem.class));
  }

  <E extends Enum<E>> E constant(String column, Class<E> type) throws SQLException {
    return Enum.valueOf(type, set.getString(column));
  }
}
