package dev.space.http;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.regex.Pattern;

/// The parameters of a request's query, read strictly.
public final class Query {
  /// More parameters than any call has.
  private static final int PARAMETERS_MAX = 100;

  private static final Pattern INTEGER = Pattern.compile("-?[0-9]{1,19}");

  private final Map<String, List<String>> values;

  private Query(Map<String, List<String>> values) {
    this.values = values;
  }

  /// Reads a raw query, without its question mark.
  ///
  /// @throws SpaceException INVALID_REQUEST when it is not well-formed
  public static Query parse(String raw) {
    var values = new LinkedHashMap<String, List<String>>();
    int count = 0;
    for (String part : raw.isEmpty() ? new String[0] : raw.split("&", -1)) {
      if (part.isEmpty()) {
        continue;
      }
      if (++count > PARAMETERS_MAX) {
        throw invalid("The query has more than " + PARAMETERS_MAX + " parameters");
      }
      int equals = part.indexOf('=');
      String name = equals < 0 ? part : part.substring(0, equals);
      String value = equals < 0 ? "" : part.substring(equals + 1);
      values
          .computeIfAbsent(PercentCoding.decode(name, true, "the query"), _ -> new ArrayList<>(1))
          .add(PercentCoding.decode(value, true, "the query"));
    }
    return new Query(values);
  }

  /// Refuses every parameter that is not named here. A name that ends in a dot allows all
  /// parameters that begin with it.
  ///
  /// @throws SpaceException UNKNOWN_FIELD, naming the parameter and what is allowed
  public Query allow(String... names) {
    for (String present : values.keySet()) {
      boolean known = false;
      for (String name : names) {
        known |= name.endsWith(".") ? present.startsWith(name) : present.equals(name);
      }
      if (!known) {
        throw Problem.of(
                ErrorCode.UNKNOWN_FIELD, "Unknown query parameter '" + Shown.of(present) + "'")
            .remedy(
                names.length == 0
                    ? "This call takes no query parameters."
                    : "Use only: " + String.join(", ", new TreeSet<>(List.of(names))) + ".")
            .toException();
      }
    }
    return this;
  }

  /// The value of a parameter that may be given once.
  ///
  /// @throws SpaceException INVALID_REQUEST when it is there twice
  public Optional<String> one(String name) {
    List<String> all = all(name);
    if (all.size() > 1) {
      throw invalid("The query parameter '" + name + "' is given " + all.size() + " times");
    }
    return all.stream().findFirst();
  }

  /// The value of a parameter that must be given.
  public String required(String name) {
    return one(name)
        .filter(v -> !v.isEmpty())
        .orElseThrow(
            () ->
                Problem.of(
                        ErrorCode.INVALID_REQUEST, "The query parameter '" + name + "' is missing")
                    .remedy("Add ?" + name + "=… to the URL.")
                    .toException());
  }

  /// All values of a parameter, in order.
  public List<String> all(String name) {
    return List.copyOf(values.getOrDefault(name, List.of()));
  }

  /// A whole number between two bounds, both included.
  public long integer(String name, long absent, long min, long max) {
    Optional<String> text = one(name);
    if (text.isEmpty()) {
      return absent;
    }
    String value = text.get();
    try {
      if (INTEGER.matcher(value).matches()) {
        long number = Long.parseLong(value);
        if (number >= min && number <= max) {
          return number;
        }
      }
    } catch (NumberFormatException _) {
      // Beyond a long: out of range like any other.
    }
    throw Problem.of(
            ErrorCode.INVALID_REQUEST,
            "The query parameter '" + name + "' is '" + Shown.of(value) + "'")
        .remedy("Give a whole number from " + min + " to " + max + ".")
        .toException();
  }

  /// `true` or `false`.
  public boolean flag(String name, boolean absent) {
    Optional<String> text = one(name);
    if (text.isEmpty()) {
      return absent;
    }
    return switch (text.get()) {
      case "true", "1", "" -> true;
      case "false", "0" -> false;
      default ->
          throw Problem.of(
                  ErrorCode.INVALID_REQUEST,
                  "The query parameter '" + name + "' is '" + Shown.of(text.get()) + "'")
              .remedy("Give true or false.")
              .toException();
    };
  }

  private static SpaceException invalid(String detail) {
    return Problem.of(ErrorCode.INVALID_REQUEST, detail)
        .remedy("See the call in /openapi.yaml.")
        .toException();
  }
}
