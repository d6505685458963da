package dev.space.cli;

import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(
    name = "exec",
    description = "Run a command in a sandbox that is there.",
    footerHeading = "%nExamples:%n",
    footer = {
      "  space exec ID -- ls -l /",
      "  space exec -t ID -- top",
      "  space exec -i ID -- sh -c 'cat > notes' < notes"
    })
final class ExecCommand extends SessionCommand {

  private final Root root;

  @Mixin private CommandOptions options = new CommandOptions();

  @Option(
      names = {"-t", "--tty"},
      description = "Give it a terminal.")
  private boolean tty;

  @Option(
      names = {"-e", "--env"},
      paramLabel = "NAME[=VALUE]",
      description = "Environment; repeatable. Without a value: one's own.")
  private List<String> env = List.of();

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
        options.run(
            separated ? argv.subList(1, argv.size()) : argv,
            Environment.of(env, surroundings.env()),
            tty);
    return tty
        ? TerminalRun.of(run, root.api(), id, surroundings).run()
        : run.runIn(root.api(), id, surroundings);
  }
}
