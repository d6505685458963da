package dev.space.dataplane;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// One range of bytes of a file, both ends included.
record ByteRange(long first, long last) {

  private static final Pattern ONE = Pattern.compile("bytes=([0-9]{0,18})-([0-9]{0,18})");

  /// Reads a Range header. Empty when it asks for several ranges or isn't understood: then the
  /// whole file is the right answer (RFC 9110, 14.2).
  ///
  /// @throws dev.space.core.error.SpaceException RANGE_NOT_SATISFIABLE
  static Optional<ByteRange> parse(String header, long size) {
    Matcher match = ONE.matcher(header.strip());
    if (!match.matches()) {
      return Optional.empty();
    }
    String from = match.group(1);
    String to = match.group(2);
    if (from.isEmpty() && to.isEmpty()) {
      return Optional.empty();
    }
    if (from.isEmpty()) {
      long count = Math.min(Long.parseLong(to), size);
      return satisfiable(size - count, size - 1, size);
    }
    long first = Long.parseLong(from);
    long last = to.isEmpty() ? size - 1 : Math.min(Long.parseLong(to), size - 1);
    if (!to.isEmpty() && Long.parseLong(to) < first) {
      return Optional.empty();
    }
    return satisfiable(first, last, size);
  }

  private static Optional<ByteRange> satisfiable(long first, long last, long size) {
    if (first > last) {
      throw Problem.of(ErrorCode.RANGE_NOT_SATISFIABLE, "The file has " + size + " bytes.")
          .remedy("Ask for a range that begins before its end.")
          .toException();
    }
    return Optional.of(new ByteRange(first, last));
  }

  long length() {
    return last - first + 1;
  }
}
