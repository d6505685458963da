package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/// Commands that the launcher carries out before any Java runs; they stand here for the help.
final class LauncherCommands {

  private LauncherCommands() {}

  private static int notHere() {
    throw Problem.of(ErrorCode.NOT_SUPPORTED, "Only the launcher can do this")
        .remedy("Call ./space in a checkout of the project.")
        .toException();
  }

  @Command(name = "test", description = "Run every test and print the sum (needs the checkout).")
  static final class Test implements Callable<Integer> {
    @Option(names = "--fast", description = "Leave out what boots VMs or takes long.")
    private boolean fast;

    @Override
    public Integer call() {
      return fast ? notHere() : notHere();
    }
  }

  @Command(name = "build", description = "Build what is out of date (needs the checkout).")
  static final class Build implements Callable<Integer> {
    @Override
    public Integer call() {
      return notHere();
    }
  }

  @Command(
      name = "bench",
      description = "Measure the product beside its floor (needs the checkout).")
  static final class Bench implements Callable<Integer> {
    @Override
    public Integer call() {
      return notHere();
    }
  }

  @Command(name = "fmt", description = "Format all sources (needs the checkout).")
  static final class Fmt implements Callable<Integer> {
    @Override
    public Integer call() {
      return notHere();
    }
  }
}
