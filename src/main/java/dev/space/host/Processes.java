package dev.space.host;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;

/// The one place that spawns processes.
///
/// Output goes to files, never through pipes: a virtual thread that reads a child's pipe holds a
/// carrier for as long as it waits.
public final class Processes {

  /// How much of an output the outcome holds.
  private static final int TAIL_BYTES_MAX = 64 * 1024;

  private final Path scratch;
  private final UnaryOperator<String> environment;

  /// @param scratch directory for the outputs of running commands
  public Processes(Path scratch) {
    this(scratch, name -> Optional.ofNullable(System.getenv(name)).orElse(""));
  }

  Processes(Path scratch, UnaryOperator<String> environment) {
    this.scratch = scratch;
    this.environment = environment;
  }

  /// How a program ended.
  ///
  /// @param status exit status, 128 + signal when a signal ended it
  /// @param stdout the last 64 KiB of its output, empty when that went to a file
  /// @param stderr the last 64 KiB of its messages, empty when they went to a file
  public record Outcome(int status, String stdout, String stderr) {

    public boolean ok() {
      return status == 0;
    }
  }

  /// Runs a program to its end. At the deadline, or when the thread is interrupted, it is killed
  /// with all its descendants.
  ///
  /// @throws dev.space.core.error.SpaceException PREREQUISITE_MISSING when there is no such
  ///   program, DEADLINE_EXCEEDED, CANCELLED
  public Outcome run(Command command, Duration deadline) {
    List<Path> temporary = new ArrayList<>(2);
    try {
      Path out = command.stdout().isPresent() ? command.stdout().get() : scratch(temporary);
      Path err = command.stderr().isPresent() ? command.stderr().get() : scratch(temporary);
      Process process = start(command, out, err);
      if (!ends(process, deadline)) {
        throw Problem.of(
                ErrorCode.DEADLINE_EXCEEDED,
                command.program() + " did not end within " + deadline.toMillis() + " ms.")
            .because(tail(err))
            .toException();
      }
      return new Outcome(
          process.exitValue(),
          command.stdout().isPresent() ? "" : tail(out),
          command.stderr().isPresent() ? "" : tail(err));
    } catch (IOException e) {
      throw Problem.of(ErrorCode.INTERNAL, "The output of " + command.program() + " is lost.")
          .because(String.valueOf(e.getMessage()))
          .toException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw Problem.of(ErrorCode.CANCELLED, command.program() + " was given up.").toException(e);
    } finally {
      temporary.forEach(file -> file.toFile().delete());
    }
  }

  /// Runs a program that must succeed and gives its output.
  ///
  /// @throws dev.space.core.error.SpaceException INTERNAL with its messages when it fails
  public String check(Command command, Duration deadline) {
    Outcome outcome = run(command, deadline);
    if (!outcome.ok()) {
      throw Problem.of(
              ErrorCode.INTERNAL, command.program() + " failed with status " + outcome.status())
          .because(outcome.stderr().isBlank() ? outcome.stdout().strip() : outcome.stderr().strip())
          .toException();
    }
    return outcome.stdout();
  }

  /// Starts a program that goes on without the daemon: in a session of its own, its output appended
  /// to a file, nobody's child. No thread waits for it here.
  ///
  /// @param log takes output and messages
  /// @param oomScoreAdj what is added to its badness when the host runs out of memory, 0 to 1000
  /// @param cgroup cgroup v2 directory it is to live in
  /// @throws dev.space.core.error.SpaceException INTERNAL when it can't be started; a program that
  ///   ends right away is seen by its identity, with the reason in the log
  public ProcessIdentity detach(
      Command command, Path log, int oomScoreAdj, Optional<Path> cgroup, Duration deadline) {
    List<String> argv = new ArrayList<>(command.argv().size() + 7);
    argv.addAll(
        List.of(
            "sh",
            "-c",
            DETACH,
            "sh",
            log.toAbsolutePath().toString(),
            Integer.toString(oomScoreAdj),
            cgroup.map(Path::toString).orElse("")));
    argv.addAll(command.argv());
    Command launcher =
        new Command(
            argv,
            command.directory(),
            command.env(),
            Optional.empty(),
            Optional.empty(),
            Optional.empty());
    String answer = check(launcher, deadline).strip();
    try {
      return ProcessIdentity.started(Long.parseLong(answer));
    } catch (NumberFormatException e) {
      throw Problem.of(ErrorCode.INTERNAL, command.program() + " could not be started.")
          .because(answer)
          .toException(e);
    }
  }

  /// The shell is gone at once, so the program is adopted by init and never becomes a zombie of the
  /// daemon. `$!` is its pid: setsid(1) replaces itself.
  private static final String DETACH =
      """
      umask 077
      log=$1 oom=$2 cgroup=$3
      shift 3
      { echo "$oom" >/proc/self/oom_score_adj; } 2>/dev/null
      if [ -n "$cgroup" ]; then echo $$ >"$cgroup/cgroup.procs" || exit 1; fi
      setsid "$@" </dev/null >>"$log" 2>&1 &
      echo $!
      """;

  private static boolean ends(Process process, Duration deadline) throws InterruptedException {
    boolean ended = false;
    try {
      ended = process.waitFor(deadline.toNanos(), TimeUnit.NANOSECONDS);
      return ended;
    } finally {
      if (!ended) {
        kill(process);
      }
    }
  }

  private Path scratch(List<Path> temporary) throws IOException {
    Path file = Files.createTempFile(Files.createDirectories(scratch), "run", ".out");
    temporary.add(file);
    return file;
  }

  private Process start(Command command, Path out, Path err) throws InterruptedException {
    ProcessBuilder builder = new ProcessBuilder(command.argv());
    command.directory().map(Path::toFile).ifPresent(builder::directory);
    Map<String, String> env = builder.environment();
    env.clear();
    env.put("PATH", searchPath());
    env.put("LC_ALL", "C.UTF-8");
    String home = environment.apply("HOME");
    env.put("HOME", home.isEmpty() ? "/" : home);
    env.putAll(command.env());
    builder.redirectInput(command.stdin().map(Path::toFile).orElse(new File("/dev/null")));
    builder.redirectOutput(ProcessBuilder.Redirect.appendTo(out.toFile()));
    if (err.equals(out)) {
      builder.redirectErrorStream(true);
    } else {
      builder.redirectError(ProcessBuilder.Redirect.appendTo(err.toFile()));
    }
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
    try {
      return builder.start();
    } catch (IOException e) {
      throw Problem.of(
              ErrorCode.PREREQUISITE_MISSING, "'" + command.argv().getFirst() + "' can't be run.")
          .because(String.valueOf(e.getMessage()))
          .remedy("Run `space doctor`: it names what is missing and how to install it.")
          .toException(e);
    }
  }

  /// System directories are searched even when the daemon's own path lacks them.
  private String searchPath() {
    String path = environment.apply("PATH");
    String system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    return path.isEmpty() ? system : path + ":" + system;
  }

  private static void kill(Process process) {
    List<ProcessHandle> tree = process.descendants().toList();
    process.destroyForcibly();
    tree.forEach(ProcessHandle::destroyForcibly);
  }

  /// The end of a file as text; empty when there is none.
  public static String tail(Path file) {
    try (RandomAccessFile in = new RandomAccessFile(file.toFile(), "r")) {
      long size = in.length();
      int wanted = (int) Math.min(size, TAIL_BYTES_MAX);
      byte[] bytes = new byte[wanted];
      in.seek(size - wanted);
      in.readFully(bytes);
      return new String(bytes, StandardCharsets.UTF_8);
    } catch (IOException _) {
      return "";
    }
  }
}
