package dev.space.cli;

import java.util.concurrent.Callable;
import picocli.AutoComplete;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

@Command(
    name = "completion",
    description = "Print a completion script for a shell.",
    footerHeading = "%nExamples:%n",
    footer = {
      "  source <(space completion bash)     in ~/.bashrc",
      "  source <(space completion zsh)      in ~/.zshrc, after compinit"
    })
final class CompletionCommand implements Callable<Integer> {

  enum Shell {
    BASH,
    ZSH
  }

  private final Root root;

  @Parameters(paramLabel = "SHELL", description = "bash or zsh.")
  private Shell shell = Shell.BASH;

  CompletionCommand(Root root) {
    this.root = root;
  }

  @Override
  public Integer call() {
    String script = AutoComplete.bash("space", Main.commandLine(root.surroundings()));
    root.printer()
        .line(
            switch (shell) {
              case BASH -> script;
              // The script itself loads bashcompinit; zsh only has to know its own completion
              // first.
              case ZSH -> "autoload -Uz compinit && compinit\n" + script;
            });
    return ExitStatus.OK;
  }
}
