package dev.space.cli;

import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

@Command(
    name = "run",
    description = {
      "Run a command in a fresh sandbox, which is deleted afterwards.",
      "Uses the daemon of this machine if one runs, else starts the service for this one call;"
          + " the first time it prepares the machine."
    },
    footerHeading = "%nExamples:%n",
    footer = {
      "  space run -- python3 -c 'print(6*7)'",
      "  space run --cpus 2 -e TOKEN -- make test",
      "  tar c src | space run -i -- tar t"
    })
final class RunCommand extends SessionCommand {

  private final Root root;

  @Mixin private NewSandbox sandbox = new NewSandbox();

  @Mixin private CommandOptions options = new CommandOptions();

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
        CommandRun run = options.run(argv, Map.of(), false);
        return run.runIn(service.api(), id, surroundings);
      }
    }
  }
}
