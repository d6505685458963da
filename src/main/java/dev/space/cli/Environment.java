package dev.space.cli;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.TypeConversionException;

/// Reads `-e` options: `NAME=value`, or `NAME` to pass on one's own value.
final class Environment {

  private Environment() {}

  static Map<String, String> of(List<String> options, Map<String, String> own) {
    Map<String, String> env = new LinkedHashMap<>();
    for (String option : options) {
      int equals = option.indexOf('=');
      String name = equals < 0 ? option : option.substring(0, equals);
      if (name.isEmpty()) {
        throw new TypeConversionException("'" + option + "' is neither NAME=value nor NAME");
      }
      if (equals >= 0) {
        env.put(name, option.substring(equals + 1));
      } else if (own.containsKey(name)) {
        env.put(name, own.getOrDefault(name, ""));
      }
    }
    return env;
  }
}
