package dev.space.host;

import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;

/// A program to run; no shell ever reads it.
///
/// @param limit after this long the program and its children are killed
/// @param argv the program, by its bare name or its path, and its arguments
/// @param env additions to the environment, which holds little else
/// @param directory working directory; empty means the daemon's
/// @param input file that is standard input; empty means end-of-file at once
/// @param output file that takes standard output untouched; when empty, output is read as lines
/// @param started told of the process
public record Command(
    Duration limit,
    List<String> argv,
    Map<String, String> env,
    Optional<Path> directory,
    Optional<Path> input,
    Optional<Path> output,
    Consumer<ProcessHandle> started) {

  public Command {
    argv = List.copyOf(argv);
    env = Map.copyOf(env);
  }

  /// A program with nothing else asked for.
  public static Command of(Duration limit, List<String> argv) {
    return new Command(
        limit, argv, Map.of(), Optional.empty(), Optional.empty(), Optional.empty(), _ -> {});
  }

  /// A program with nothing else asked for.
  public static Command of(Duration limit, String... argv) {
    return of(limit, List.of(argv));
  }

  /// The same with these variables in addition.
  public Command env(Map<String, String> more) {
    Map<String, String> all = new LinkedHashMap<>(env);
    all.putAll(more);
    return new Command(limit, argv, all, directory, input, output, started);
  }

  /// The same in this working directory.
  public Command in(Path workdir) {
    return new Command(limit, argv, env, Optional.of(workdir), input, output, started);
  }

  /// The same reading this file.
  public Command from(Path file) {
    return new Command(limit, argv, env, directory, Optional.of(file), output, started);
  }

  /// The same writing its output to this file.
  public Command to(Path file) {
    return new Command(limit, argv, env, directory, input, Optional.of(file), started);
  }

  /// The same, telling of its process when it has started.
  public Command onStart(Consumer<ProcessHandle> told) {
    return new Command(limit, argv, env, directory, input, output, told);
  }
}
