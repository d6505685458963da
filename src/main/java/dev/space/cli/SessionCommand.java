package dev.space.cli;

import java.util.concurrent.Callable;
import picocli.CommandLine.Command;

/// A command of the CLI that stands for one in a sandbox: its exit status is that one's.
@Command(
    exitCodeListHeading = "%nExit status:%n",
    exitCodeList = {
      "n:the command's own status",
      "128+n:the command was ended by signal n",
      "125:something beside the command failed",
      "126:the command can't be run",
      "127:there is no such command"
    })
abstract class SessionCommand implements Callable<Integer> {}
