package dev.space.cli;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// A command that only has commands below it.
abstract class Group implements Runnable {

  @Spec private @Nullable CommandSpec spec;

  @Override
  public void run() {
    CommandSpec mine = spec;
    if (mine == null) {
      throw new IllegalStateException("picocli sets the spec before it runs a command");
    }
    throw new ParameterException(
        mine.commandLine(), "Which one? " + String.join(", ", mine.subcommands().keySet()));
  }
}
