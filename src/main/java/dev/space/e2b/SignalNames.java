package dev.space.e2b;

import java.util.Map;

/// Names of signals as Go prints them, which is how E2B's server reports them.
final class SignalNames {

  private static final Map<Integer, String> NAMES =
      Map.ofEntries(
          Map.entry(1, "hangup"),
          Map.entry(2, "interrupt"),
          Map.entry(3, "quit"),
          Map.entry(4, "illegal instruction"),
          Map.entry(5, "trace/breakpoint trap"),
          Map.entry(6, "aborted"),
          Map.entry(7, "bus error"),
          Map.entry(8, "floating point exception"),
          Map.entry(9, "killed"),
          Map.entry(10, "user defined signal 1"),
          Map.entry(11, "segmentation fault"),
          Map.entry(12, "user defined signal 2"),
          Map.entry(13, "broken pipe"),
          Map.entry(14, "alarm clock"),
          Map.entry(15, "terminated"));

  private SignalNames() {}

  static String of(int signal) {
    return NAMES.getOrDefault(signal, "signal " + signal);
  }
}
