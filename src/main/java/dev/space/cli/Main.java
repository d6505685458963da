package dev.space.cli;

import dev.space.app.Version;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.List;
import picocli.CommandLine;
import picocli.CommandLine.Help.Ansi;
import picocli.CommandLine.IVersionProvider;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/// Entry point of the command line.
public final class Main {

  private Main() {}

  /// Runs one command and ends the process with its exit status.
  public static void main(String[] args) {
    int status = run(Surroundings.ofProcess(), args);
    System.exit(status);
  }

  static int run(Surroundings surroundings, String... args) {
    return commandLine(surroundings).execute(args);
  }

  static CommandLine commandLine(Surroundings surroundings) {
    return commandLine(surroundings, new LocalAssembly(surroundings));
  }

  /// @param assembly the service as this process can run it
  static CommandLine commandLine(Surroundings surroundings, Assembly assembly) {
    Root root = new Root(surroundings, assembly);
    CommandLine line = new CommandLine(root);
    for (Object command : commands(root)) {
      CommandLine one = new CommandLine(command);
      // A command that is run in a sandbox has its own options: from the first word on, all is its.
      one.setStopAtPositional(command instanceof SessionCommand);
      line.addSubcommand(one);
    }
    line.setCaseInsensitiveEnumValuesAllowed(true);
    line.setAbbreviatedOptionsAllowed(false);
    line.setUsageHelpAutoWidth(false);
    line.setUsageHelpWidth(100);

    line.setColorScheme(CommandLine.Help.defaultColorScheme(Ansi.OFF));
    line.setOut(new PrintWriter(surroundings.out(), true, StandardCharsets.UTF_8));
    line.setErr(new PrintWriter(surroundings.err(), true, StandardCharsets.UTF_8));
    IVersionProvider version = () -> new String[] {"space " + Version.current()};
    line.getCommandSpec().versionProvider(version);
    line.setParameterExceptionHandler((e, _) -> usageError(surroundings.err(), e));
    line.setExecutionExceptionHandler(
        (e, commandLine, _) -> failure(surroundings, e, commandLine.getCommand()));
    return line;
  }

  private static List<Object> commands(Root root) {
    return List.of(
        new RunCommand(root),
        new ServeCommand(root),
        new SetupCommand(root),
        new DoctorCommand(root),
        new SandboxCommands(root),
        new ExecCommand(root),
        new ShellCommand(root),
        new AttachCommand(root),
        new CpCommand(root),
        new PortForwardCommand(root),
        new OpsCommands(root),
        new TemplateCommands(root),
        new E2bCommands(root),
        new SnapshotCommands(root),
        new EventsCommand(root),
        new PruneCommand(root),
        new CompletionCommand(root),
        new VersionCommand(root),
        new LauncherCommands.Test(),
        new LauncherCommands.Build(),
        new LauncherCommands.Fmt(),
        new LauncherCommands.Bench(),
        new TrainCommand(root));
  }

  private static int usageError(PrintStream err, ParameterException e) {
    CommandLine command = e.getCommandLine();
    err.println("space: " + e.getMessage());
    if (e instanceof UnmatchedArgumentException unmatched) {
      List<String> close = unmatched.getSuggestions();
      if (!close.isEmpty()) {
        err.println("       Did you mean: " + String.join(" or ", close) + "?");
      }
    }
    err.println("       See: " + command.getCommandSpec().qualifiedName() + " --help");
    return ExitStatus.USAGE;
  }

  private static int failure(Surroundings surroundings, Exception e, Object command) {
    Problem problem =
        e instanceof SpaceException known
            ? known.problem()
            : Problem.of(ErrorCode.INTERNAL, "Something unexpected happened")
                .because(e)
                .remedy("Please report it; SPACE_TRACE=1 shows where it happened.");
    print(surroundings.err(), problem);
    if (surroundings.variable("SPACE_TRACE").isPresent()) {
      e.printStackTrace(surroundings.err());
    }
    return command instanceof SessionCommand
        ? ExitStatus.ofSession(problem.code())
        : ExitStatus.FAILURE;
  }

  /// One problem as people read it: what happened and why, then what to do.
  static void print(PrintStream err, Problem problem) {
    err.println("space: " + problem.oneLine());
    problem.remedy().ifPresent(remedy -> err.println("       " + remedy));
  }
}
