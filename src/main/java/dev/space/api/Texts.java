package dev.space.api;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/// Maps and lists of strings as bodies bring them, which may hold nulls.
final class Texts {
  private Texts() {}

  static Map<String, String> map(String field, Optional<Map<String, String>> given) {
    Map<String, String> map = given.orElse(Map.of());
    if (map.values().stream().anyMatch(Objects::isNull)) {
      throw nothing(field);
    }
    return Map.copyOf(map);
  }

  static List<String> list(String field, List<String> given) {
    if (given.stream().anyMatch(Objects::isNull)) {
      throw nothing(field);
    }
    return List.copyOf(given);
  }

  private static dev.space.core.error.SpaceException nothing(String field) {
    return Problem.of(ErrorCode.INVALID_REQUEST, "A value in '" + field + "' is null")
        .remedy("Give a string or leave it out.")
        .toException();
  }
}
