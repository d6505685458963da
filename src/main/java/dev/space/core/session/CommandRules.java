package dev.space.core.session;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.ProcessSpec;
import dev.space.core.guest.ProcessSpec.PtySize;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/// What a session may ask for, and how that becomes a process.
final class CommandRules {

  static final String BASH = "/bin/bash";
  static final String SH = "/bin/sh";

  /// Linux takes no longer word (MAX_ARG_STRLEN, 32 pages).
  private static final int WORD_BYTES_MAX = 128 * 1024 - 1;

  private static final int WORDS_MAX = 4096;
  private static final int ENV_COUNT_MAX = 1024;

  /// Words and environment together; they travel in one message to the guest.
  private static final int TOTAL_BYTES_MAX = 512 * 1024;

  private static final int PATH_BYTES_MAX = 4095;
  private static final int USER_BYTES_MAX = 64;
  private static final int TAG_BYTES_MAX = 256;
  private static final int PTY_SIDE_MAX = 2000;
  private static final Duration TIMEOUT_MAX = Duration.ofDays(30);

  private CommandRules() {}

  /// The process of a session.
  ///
  /// @throws dev.space.core.error.SpaceException INVALID_REQUEST
  static ProcessSpec spec(String id, CreateSession request) {
    List<String> argv =
        switch (request.command()) {
          case CreateSession.Command.Argv(List<String> words) -> words(words);
          case CreateSession.Command.Shell(String line) -> shell(line);
        };
    long total = 0;
    for (String word : argv) {
      total += text("A word of the command", word, WORD_BYTES_MAX);
    }
    total += environment(request.env());
    if (total > TOTAL_BYTES_MAX) {
      throw invalid(
          "Command and environment have " + total + " bytes together.",
          "Keep them under " + TOTAL_BYTES_MAX + " bytes; put larger data into a file or stdin.");
    }
    request.cwd().ifPresent(cwd -> text("cwd", cwd, PATH_BYTES_MAX));
    request.user().ifPresent(user -> text("user", user, USER_BYTES_MAX));
    request.tag().ifPresent(tag -> text("tag", tag, TAG_BYTES_MAX));
    request.pty().ifPresent(CommandRules::size);
    request.timeout().ifPresent(CommandRules::timeout);
    return new ProcessSpec(
        id,
        argv,
        Map.copyOf(request.env()),
        request.cwd().filter(cwd -> !cwd.isEmpty()),
        request.user().filter(user -> !user.isEmpty()),
        request.stdin() || request.pty().isPresent(),
        request.pty(),
        request.timeout(),
        request.tag().orElse(""),
        !request.keep());
  }

  /// The same process with the shell that every system has.
  static ProcessSpec withoutBash(ProcessSpec spec) {
    return new ProcessSpec(
        spec.id(),
        List.of(SH, "-c", spec.argv().getLast()),
        spec.env(),
        spec.cwd(),
        spec.user(),
        spec.stdin(),
        spec.pty(),
        spec.timeout(),
        spec.tag(),
        spec.killTreeAtExit());
  }

  static void size(PtySize size) {
    if (size.cols() < 1
        || size.rows() < 1
        || size.cols() > PTY_SIDE_MAX
        || size.rows() > PTY_SIDE_MAX) {
      throw invalid(
          "A terminal can't have " + size.cols() + " columns and " + size.rows() + " rows.",
          "Give 1 to " + PTY_SIDE_MAX + " of each.");
    }
  }

  static void signal(int signal) {
    if (signal < 1 || signal > 64) {
      throw invalid("There is no signal " + signal + ".", "Give 1 to 64, or a name such as INT.");
    }
  }

  private static List<String> words(List<String> words) {
    if (words.isEmpty() || words.getFirst().isEmpty()) {
      throw invalid("The command is empty.", "Give the program to run as its first word.");
    }
    if (words.size() > WORDS_MAX) {
      throw invalid(
          "The command has " + words.size() + " words.", "Give at most " + WORDS_MAX + ".");
    }
    return List.copyOf(words);
  }

  private static List<String> shell(String line) {
    if (line.isBlank()) {
      throw invalid("The command is empty.", "Give a command line for the shell.");
    }
    return List.of(BASH, "-c", line);
  }

  private static long environment(Map<String, String> env) {
    if (env.size() > ENV_COUNT_MAX) {
      throw invalid(
          "The environment has " + env.size() + " variables.",
          "Give at most " + ENV_COUNT_MAX + ".");
    }
    long total = 0;
    for (var variable : env.entrySet()) {
      String name = variable.getKey();
      if (name.isEmpty() || name.indexOf('=') >= 0) {
        throw invalid(
            "An environment variable has an empty name or one with '='.", "Name it differently.");
      }
      total += text("The name of an environment variable", name, WORD_BYTES_MAX);
      total += text("The environment variable " + name, variable.getValue(), WORD_BYTES_MAX);
    }
    return total;
  }

  private static int text(String what, String value, int bytesMax) {
    if (value.indexOf('\0') >= 0) {
      throw invalid(what + " holds a NUL character.", "Linux can't pass it on: leave it out.");
    }
    int bytes = value.getBytes(StandardCharsets.UTF_8).length;
    if (bytes > bytesMax) {
      throw invalid(what + " has " + bytes + " bytes.", "Keep it to " + bytesMax + " bytes.");
    }
    return bytes;
  }

  private static void timeout(Duration timeout) {
    if (timeout.isNegative() || timeout.isZero() || timeout.compareTo(TIMEOUT_MAX) > 0) {
      throw invalid(
          "A timeout of " + timeout.toSeconds() + " s can't be had.",
          "Give more than 0 s and at most " + TIMEOUT_MAX.toSeconds() + " s, or none.");
    }
  }

  private static RuntimeException invalid(String detail, String remedy) {
    return Problem.of(ErrorCode.INVALID_REQUEST, detail).remedy(remedy).toException();
  }
}
