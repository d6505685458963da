package dev.space.cli;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(
    name = "exec",
    description = "Run a command in a sandbox that is there.",
    exitCodeListHeading = "%nExit status:%n",
    exitCodeList = {
      "n:the command's own status",
      "128+n:the command was ended by signal n",
      "125:something beside the command failed",
      "126:the command can't be run",
      "127:there is no such command"
    },
    footerHeading = "%nExamples:%n",
    footer = {
      "  space exec ID -- ls -l /",
      "  space exec -t ID -- top",
      "  space exec -i ID -- sh -c 'cat > notes' < notes"
    })
final class ExecCommand implements Callable<Integer>, Main.RunsSession {

  private final Root root;

  @Option(
      names = {"-i", "--stdin"},
      description = "Pass standard input on; without it the command has none.")
  private boolean stdin;

  @Option(
      names = {"-t", "--tty"},
      description = "Give it a terminal.")
  private boolean tty;

  @Option(
      names = {"-e", "--env"},
      paramLabel = "NAME[=VALUE]",
      description = "Environment; repeatable. Without a value: one's own.")
  private List<String> env = List.of();

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

  @Parameters(index = "0", paramLabel = "ID", description = "The sandbox.")
  private String id = "";

  @Parameters(
      index = "1..*",
      arity = "1..*",
      paramLabel = "CMD",
      description = "The command and its arguments.")
  private List<String> argv = List.of();

  ExecCommand(Root root) {
    this.root = root;
  }

  @Override
  public Integer call() {
    Surroundings surroundings = root.surroundings();
    // What follows the id belongs to the command, so the separator arrives as its first word.
    boolean separated = argv.size() > 1 && argv.getFirst().equals("--");
    CommandRun run =
        new CommandRun(
            separated ? argv.subList(1, argv.size()) : argv,
            Environment.of(env, surroundings.env()),
            cwd,
            user,
            stdin || tty,
            timeout);
    return tty
        ? TerminalRun.of(run, root.api(), id, surroundings).run()
        : run.runIn(root.api(), id, surroundings);
  }
}
