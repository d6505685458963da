package dev.space.host;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// A program to run. It gets `PATH`, `HOME` and a UTF-8 locale besides its own environment, and
/// nothing else of the daemon's: that may hold secrets.
///
/// @param argv never parsed by a shell
/// @param directory working directory; empty means the daemon's
/// @param stdin file it reads; empty means end-of-file at once
/// @param stdout file that takes its output; empty means that the outcome holds the end of it
/// @param stderr file that takes its messages; empty means that the outcome holds the end of them
public record Command(
    List<String> argv,
    Optional<Path> directory,
    Map<String, String> env,
    Optional<Path> stdin,
    Optional<Path> stdout,
    Optional<Path> stderr) {

  public Command {
    argv = List.copyOf(argv);
    env = Map.copyOf(env);
  }

  /// A program with nothing else asked for.
  public static Command of(String... argv) {
    return of(List.of(argv));
  }

  /// A program with nothing else asked for.
  public static Command of(List<String> argv) {
    return new Command(
        argv, Optional.empty(), Map.of(), Optional.empty(), Optional.empty(), Optional.empty());
  }

  /// The same in this working directory.
  public Command in(Path workdir) {
    return new Command(argv, Optional.of(workdir), env, stdin, stdout, stderr);
  }

  /// The same with this environment in addition.
  public Command with(Map<String, String> variables) {
    return new Command(argv, directory, variables, stdin, stdout, stderr);
  }

  /// The same reading this file.
  public Command from(Path file) {
    return new Command(argv, directory, env, Optional.of(file), stdout, stderr);
  }

  /// The same writing its output to this file.
  public Command to(Path file) {
    return new Command(argv, directory, env, stdin, Optional.of(file), stderr);
  }

  /// The same writing output and messages to this file.
  public Command logging(Path file) {
    return new Command(argv, directory, env, stdin, Optional.of(file), Optional.of(file));
  }

  /// The program's own name, for messages.
  public String program() {
    String path = argv.getFirst();
    return path.substring(path.lastIndexOf('/') + 1);
  }
}
