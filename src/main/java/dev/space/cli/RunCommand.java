package dev.space.cli;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(
    name = "run",
    description = {
      "Run a command in a fresh sandbox, which is deleted afterwards.",
      "Uses the daemon of this machine if one runs, else starts the service for this one call;"
          + " the first time it prepares the machine."
    },
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
      "  space run -- python3 -c 'print(6*7)'",
      "  space run --cpus 2 -e TOKEN -- make test",
      "  tar c src | space run -i -- tar t"
    })
final class RunCommand implements Callable<Integer>, Main.RunsSession {

  private final Root root;

  @Mixin private NewSandbox sandbox = new NewSandbox();

  @Option(
      names = {"-i", "--stdin"},
      description = "Pass standard input on; without it the command has none.")
  private boolean stdin;

  @Option(
      names = {"-T", "--timeout"},
      paramLabel = "TIME",
      converter = Durations.class,
      description = "Kill the command after this time, such as 90s or 10m.")
  private Optional<Duration> timeout = Optional.empty();

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

  @Parameters(arity = "1..*", paramLabel = "CMD", description = "The command and its arguments.")
  private List<String> argv = List.of();

  RunCommand(Root root) {
    this.root = root;
  }

  @Override
  public Integer call() {
    Logging.quiet();
    Surroundings surroundings = root.surroundings();
    try (Progress progress = root.progress()) {
      Service service = Service.findOrStart(root, progress);
      try (FreshSandbox fresh = new FreshSandbox(service, sandbox.request(surroundings))) {
        progress.step("creating a sandbox");
        String id = fresh.create(progress, surroundings.errTerminal());
        progress.clear();
        CommandRun run = new CommandRun(argv, Map.of(), cwd, user, stdin, timeout);
        return run.runIn(service.api(), id, surroundings);
      }
    }
  }
}
