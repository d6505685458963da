package dev.space.cli;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(
    name = "shell",
    description = "Open a login shell in a sandbox.",
    footerHeading = "%nExamples:%n",
    footer = {"  space shell ID", "  space shell -u root ID"})
final class ShellCommand extends SessionCommand {

  /// Bash where the template has it.
  private static final String LOGIN_SHELL =
      "if command -v bash >/dev/null; then exec bash -l; else exec sh -l; fi";

  private final Root root;

  @Option(
      names = {"-u", "--user"},
      paramLabel = "NAME",
      description = "Whose shell (default: the template's user).")
  private Optional<String> user = Optional.empty();

  @Parameters(paramLabel = "ID", description = "The sandbox.")
  private String id = "";

  ShellCommand(Root root) {
    this.root = root;
  }

  @Override
  public Integer call() {
    Surroundings surroundings = root.surroundings();
    Map<String, String> env = new LinkedHashMap<>();
    env.put("TERM", surroundings.variable("TERM").orElse("xterm-256color"));
    surroundings.variable("COLORTERM").ifPresent(value -> env.put("COLORTERM", value));
    CommandRun run =
        new CommandRun(
            List.of("/bin/sh", "-c", LOGIN_SHELL),
            env,
            Optional.empty(),
            user,
            true,
            Optional.empty());
    return TerminalRun.of(run, root.api(), id, surroundings).run();
  }
}
