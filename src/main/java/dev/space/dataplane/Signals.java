package dev.space.dataplane;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.util.List;
import java.util.Locale;

/// Signals of Linux on x86-64 and arm64 by name; signal(7).
final class Signals {

  private static final List<String> NAMES =
      List.of(
          "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
          "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
          "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS");

  private static final int MAX = 64;

  private Signals() {}

  static String name(int signal) {
    return signal >= 1 && signal <= NAMES.size() ? "SIG" + NAMES.get(signal - 1) : "SIG" + signal;
  }

  /// The number of a signal given as `INT`, `SIGINT` or `2`.
  static int number(String text) {
    String name = text.strip().toUpperCase(Locale.ROOT);
    int known = NAMES.indexOf(name.startsWith("SIG") ? name.substring(3) : name);
    if (known >= 0) {
      return known + 1;
    }
    if (name.matches("[0-9]{1,2}")) {
      int number = Integer.parseInt(name);
      if (number >= 1 && number <= MAX) {
        return number;
      }
    }
    throw Problem.of(ErrorCode.INVALID_REQUEST, "There is no such signal.")
        .remedy("Give a name such as INT or a number from 1 to " + MAX + ".")
        .toException();
  }
}
