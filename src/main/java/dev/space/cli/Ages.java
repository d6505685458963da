package dev.space.cli;

import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.format.DateTimeParseException;

/// Times as people read them in a table.
final class Ages {

  private Ages() {}

  /// A column that says how long ago something was, or in how long it will be.
  static Printer.Column column(String title, String field, InstantSource clock) {
    return new Printer.Column(
        title,
        node -> {
          String text = Printer.text(node, field);
          try {
            return text.equals("-")
                ? text
                : age(Duration.between(Instant.parse(text), clock.instant()).abs());
          } catch (DateTimeParseException e) {
            return text;
          }
        });
  }

  /// A column that shows a number of bytes.
  static Printer.Column size(String title, String field) {
    return new Printer.Column(
        title, node -> node.path(field).isNumber() ? bytes(node.path(field).asLong()) : "-");
  }

  static String age(Duration age) {
    if (age.toMinutes() < 2) {
      return age.toSeconds() + "s";
    }
    if (age.toHours() < 2) {
      return age.toMinutes() + "m";
    }
    return age.toDays() < 2 ? age.toHours() + "h" : age.toDays() + "d";
  }

  /// A number of bytes with a unit of 1024.
  static String bytes(long bytes) {
    if (bytes < 1024) {
      return bytes + " B";
    }
    String[] units = {"KiB", "MiB", "GiB", "TiB"};
    double value = bytes;
    int unit = -1;
    while (value >= 1024 && unit < units.length - 1) {
      value /= 1024;
      unit++;
    }
    return String.format(
        java.util.Locale.ROOT, value < 10 ? "%.1f %s" : "%.0f %s", value, units[unit]);
  }
}
