package dev.space.cli;

import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/// Reads durations such as `90s`, `10m`, `1h30m`, `2d`; a number alone means seconds.
final class Durations implements ITypeConverter<Duration> {

  private static final Pattern FORM =
      Pattern.compile("(?:(\\d{1,6})d)?(?:(\\d{1,6})h)?(?:(\\d{1,6})m)?(?:(\\d{1,9})s?)?");

  Durations() {}

  @Override
  public Duration convert(String text) {
    Matcher form = FORM.matcher(text);
    if (text.isEmpty() || !form.matches()) {
      throw new TypeConversionException("'" + text + "' is no duration such as 90s, 10m or 1h30m");
    }
    return Duration.ofDays(part(form, 1))
        .plusHours(part(form, 2))
        .plusMinutes(part(form, 3))
        .plusSeconds(part(form, 4));
  }

  /// A duration as the API takes it, and as it is read here.
  static String text(Duration duration) {
    return duration.toSeconds() + "s";
  }

  private static long part(Matcher form, int group) {
    String digits = form.group(group);
    return digits == null ? 0 : Long.parseLong(digits);
  }
}
