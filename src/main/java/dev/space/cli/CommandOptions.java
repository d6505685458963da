package dev.space.cli;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import picocli.CommandLine.Option;

/// Options of a command that runs in a sandbox, shared by `run` and `exec`.
final class CommandOptions {

  @Option(
      names = {"-i", "--stdin"},
      description = "Pass standard input on; without it the command has none.")
  private boolean stdin;

  @Option(
      names = {"-u", "--user"},
      paramLabel = "NAME",
      description = "Who runs it (default: the template's user).")
  private Optional<String> user = Optional.empty();

  @Option(
      names = {"-w", "--workdir"},
      paramLabel = "DIR",
      description = "Where it runs (default: the template's folder).")
  private Optional<String> cwd = Optional.empty();

  @Option(
      names = {"-T", "--timeout"},
      paramLabel = "TIME",
      converter = Durations.class,
      description = "Kill the command after this time, such as 90s or 10m.")
  private Optional<Duration> timeout = Optional.empty();

  /// The command as these options have it.
  ///
  /// @param terminal whether it has one, which is an input whatever `-i` says
  CommandRun run(List<String> argv, Map<String, String> env, boolean terminal) {
    return new CommandRun(argv, env, cwd, user, stdin || terminal, timeout);
  }
}
