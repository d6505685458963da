package dev.space.host;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/// Runs tools of the host to their end: package tools, file system tools. Their environment is made
/// from nothing but what tools need, their input is empty, and their output goes through a file, so
/// that no virtual thread is parked on a pipe.
public final class Commands {

  /// Where Debian keeps its tools; `sbin` is often not on the PATH of a service.
  static final List<String> TOOL_DIRECTORIES =
      List.of("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin");

  private static final List<String> KEPT =
      List.of("HOME", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY");
  private static final Duration FOLLOW = Duration.ofMillis(40);
  private static final Duration GRACE = Duration.ofSeconds(5);
  private static final int TAIL_LINES = 40;

  private final Map<String, String> surroundings;
  private final List<String> toolDirectories;

  /// @param surroundings the daemon's own environment, of which little is passed on
  public Commands(Map<String, String> surroundings) {
    this(surroundings, TOOL_DIRECTORIES);
  }

  Commands(Map<String, String> surroundings, List<String> toolDirectories) {
    this.surroundings = Map.copyOf(surroundings);
    this.toolDirectories = List.copyOf(toolDirectories);
  }

  /// @param argv the tool by its bare name, and its arguments
  /// @param env additions to the environment
  /// @param input file that is standard input
  /// @param output file that takes standard output untouched; when empty, output is read as lines
  /// @param limit after this long the tool and its children are killed
  /// @param started told of the tool's process id
  public record Command(
      List<String> argv,
      Map<String, String> env,
      Optional<Path> directory,
      Optional<Path> input,
      Optional<Path> output,
      Duration limit,
      Consumer<ProcessHandle> started) {

    public static Command of(Duration limit, List<String> argv) {
      return new Command(
          List.copyOf(argv),
          Map.of(),
          Optional.empty(),
          Optional.empty(),
          Optional.empty(),
          limit,
          _ -> {});
    }

    public static Command of(Duration limit, String... argv) {
      return of(limit, List.of(argv));
    }

    public Command env(Map<String, String> more) {
      Map<String, String> all = new LinkedHashMap<>(env);
      all.putAll(more);
      return new Command(argv, Map.copyOf(all), directory, input, output, limit, started);
    }

    public Command in(Path dir) {
      return new Command(argv, env, Optional.of(dir), input, output, limit, started);
    }

    public Command from(Path file) {
      return new Command(argv, env, directory, Optional.of(file), output, limit, started);
    }

    public Command to(Path file) {
      return new Command(argv, env, directory, input, Optional.of(file), limit, started);
    }

    public Command onStart(Consumer<ProcessHandle> told) {
      return new Command(argv, env, directory, input, output, limit, told);
    }
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

  /// The full path of a tool, if it is installed.
  public Optional<Path> find(String tool) {
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
    return Problem.of(code, tool + " could not be run")
        .because(String.valueOf(e.getMessage()))
        .toException(e);
  }
}
