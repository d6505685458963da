package dev.space.host;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/// The one place that spawns processes. Their environment is made from nothing but what tools need:
/// the daemon's own may hold secrets. Output goes through files, never through pipes: a virtual
/// thread that reads a child's pipe holds a carrier for as long as it waits.
public final class Processes {

  /// Where Debian keeps its tools; `sbin` is often not on the PATH of a service.
  static final List<String> TOOL_DIRECTORIES =
      List.of("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin");

  private static final List<String> KEPT =
      List.of("HOME", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY");
  private static final Duration FOLLOW = Duration.ofMillis(40);
  private static final Duration GRACE = Duration.ofSeconds(5);
  private static final int TAIL_LINES = 40;

  /// How much of a log is shown.
  private static final int TAIL_BYTES_MAX = 64 * 1024;

  private final Map<String, String> surroundings;
  private final List<String> toolDirectories;

  /// @param surroundings the daemon's own environment, of which little is passed on
  public Processes(Map<String, String> surroundings) {
    this(surroundings, TOOL_DIRECTORIES);
  }

  Processes(Map<String, String> surroundings, List<String> toolDirectories) {
    this.surroundings = Map.copyOf(surroundings);
    this.toolDirectories = List.copyOf(toolDirectories);
  }

  /// @param tail the last lines the tool said
  public record Finished(int status, List<String> tail) {
    public boolean ok() {
      return status == 0;
    }

    /// The last lines as one text for an error's cause.
    public String said() {
      return tail.isEmpty() ? "it said nothing" : String.join("\n", tail);
    }
  }

  /// The full path of a tool, if it is installed. What is given as a path is looked at only there.
  public Optional<Path> find(String tool) {
    if (tool.contains("/")) {
      return Optional.of(Path.of(tool)).filter(Files::isExecutable);
    }
    for (String dir : searchPath()) {
      Path candidate = Path.of(dir, tool);
      if (Files.isRegularFile(candidate) && Files.isExecutable(candidate)) {
        return Optional.of(candidate);
      }
    }
    return Optional.empty();
  }

  /// Runs a tool to its end; interrupting the thread ends the tool and its children.
  ///
  /// @param line told each line of output as it comes, at most 4 KiB of it
  /// @throws dev.space.core.error.SpaceException PREREQUISITE_MISSING when the tool isn't
  ///   installed, DEADLINE_EXCEEDED, CANCELLED
  public Finished run(Command command, Consumer<String> line) {
    String tool = command.argv().getFirst();
    Path program =
        find(tool)
            .orElseThrow(
                () ->
                    Problem.of(ErrorCode.PREREQUISITE_MISSING, tool + " is not installed")
                        .remedy("Run 'space setup', which installs what is missing.")
                        .toException());
    Path log;
    try {
      log = Files.createTempFile("space-" + program.getFileName() + "-", ".log");
    } catch (IOException e) {
      throw failed(tool, e);
    }
    try (LineTail follower = new LineTail(log, TAIL_LINES, line)) {
      return follow(command, program, log, follower);
    } catch (IOException e) {
      throw failed(tool, e);
    } finally {
      try {
        Files.deleteIfExists(log);
      } catch (IOException _) {
        // A log left in the temporary directory harms nobody.
      }
    }
  }

  /// Runs a tool whose lines nobody follows.
  public Finished run(Command command) {
    return run(command, _ -> {});
  }

  /// Starts a program that goes on without the daemon: in a session of its own, its output appended
  /// to a file, nobody's child. No thread waits for it here.
  ///
  /// @param command its limit is for its start alone
  /// @param log takes output and messages
  /// @param oomScoreAdj what is added to its badness when the host runs out of memory, 0 to 1000
  /// @param cgroup cgroup v2 directory it is to live in
  /// @throws dev.space.core.error.SpaceException INTERNAL when it can't be started; a program that
  ///   ends right away is seen by its identity, with the reason in the log
  public ProcessIdentity detach(Command command, Path log, int oomScoreAdj, Optional<Path> cgroup) {
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
    Finished launched =
        uninterrupted(
            new Command(
                command.limit(),
                argv,
                command.env(),
                command.directory(),
                Optional.empty(),
                Optional.empty(),
                command.started()));
    String answer = launched.said().strip();
    if (!launched.ok()) {
      throw notStarted(command, answer).toException();
    }
    try {
      return ProcessIdentity.started(Long.parseLong(answer));
    } catch (NumberFormatException e) {
      throw notStarted(command, answer).toException(e);
    }
  }

  /// Runs a command to its end whatever interrupts the caller, whose interrupt stays set: given up
  /// in its middle, it could leave a program behind that nobody knows.
  private Finished uninterrupted(Command command) {
    var finished = new CompletableFuture<Finished>();
    Thread.ofVirtual()
        .name("detach")
        .start(
            () -> {
              try {
                finished.complete(run(command));
              } catch (RuntimeException e) {
                finished.completeExceptionally(e);
              }
            });
    try {
      return finished.join();
    } catch (CompletionException e) {
      if (e.getCause() instanceof SpaceException failure) {
        throw failure.problem().toException(failure);
      }
      throw e;
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

  private static Problem notStarted(Command command, String cause) {
    return Problem.of(ErrorCode.INTERNAL, command.argv().getFirst() + " could not be started")
        .because(cause);
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

  private Finished follow(Command command, Path program, Path log, LineTail follower)
      throws IOException {
    Process process = start(command, program, log);
    Instant end = Instant.now().plus(command.limit());
    try {
      command.started().accept(process.toHandle());
      while (true) {
        boolean over = isOver(process);
        follower.read();
        if (over) {
          follower.finish();
          return new Finished(process.exitValue(), follower.tail());
        }
        if (Instant.now().isAfter(end)) {
          throw Problem.of(
                  ErrorCode.DEADLINE_EXCEEDED,
                  program.getFileName() + " took longer than " + command.limit().toSeconds() + " s")
              .because(String.join("\n", follower.tail()))
              .toException();
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw Problem.of(ErrorCode.CANCELLED, program.getFileName() + " was interrupted")
          .toException(e);
    } finally {
      endTree(process.toHandle());
    }
  }

  private Process start(Command command, Path program, Path log) throws IOException {
    List<String> argv = new ArrayList<>(command.argv());
    argv.set(0, program.toString());
    ProcessBuilder builder = new ProcessBuilder(argv);
    builder.redirectInput(command.input().orElse(Path.of("/dev/null")).toFile());
    if (command.output().isPresent()) {
      builder.redirectOutput(command.output().get().toFile());
      builder.redirectError(ProcessBuilder.Redirect.appendTo(log.toFile()));
    } else {
      builder.redirectErrorStream(true);
      builder.redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()));
    }
    command.directory().ifPresent(d -> builder.directory(d.toFile()));
    Map<String, String> env = builder.environment();
    env.clear();
    for (String name : KEPT) {
      if (surroundings.containsKey(name)) {
        env.put(name, surroundings.get(name));
      }
    }
    env.put("PATH", String.join(":", searchPath()));
    env.put("LC_ALL", "C.UTF-8");
    env.putAll(command.env());
    return builder.start();
  }

  private static boolean isOver(Process process) throws InterruptedException {
    try {
      process.onExit().get(FOLLOW.toMillis(), TimeUnit.MILLISECONDS);
      return true;
    } catch (TimeoutException _) {
      return false;
    } catch (ExecutionException e) {
      throw new IllegalStateException("waiting for a process failed", e);
    }
  }

  /// Asks a process and its children to end, then makes them. Nothing happens to one that is over.
  public static void endTree(ProcessHandle root) {
    if (!root.isAlive()) {
      return;
    }
    List<ProcessHandle> tree = new ArrayList<>();
    tree.add(root);
    root.descendants().forEach(tree::add);
    root.destroy();
    boolean interrupted = Thread.interrupted();
    try {
      root.onExit().get(GRACE.toMillis(), TimeUnit.MILLISECONDS);
    } catch (TimeoutException | ExecutionException _) {
      root.descendants().forEach(tree::add);
    } catch (InterruptedException _) {
      interrupted = true;
    }
    tree.forEach(ProcessHandle::destroyForcibly);
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private List<String> searchPath() {
    List<String> dirs = new ArrayList<>();
    for (String dir : surroundings.getOrDefault("PATH", "").split(":")) {
      if (dir.startsWith("/")) {
        dirs.add(dir);
      }
    }
    toolDirectories.stream().filter(d -> !dirs.contains(d)).forEach(dirs::add);
    return dirs;
  }

  private static SpaceException failed(String tool, IOException e) {
    ErrorCode code =
        e instanceof NoSuchFileException ? ErrorCode.PREREQUISITE_MISSING : ErrorCode.INTERNAL;
    return Problem.of(code, tool + " could not be run").because(e).toException(e);
  }
}
