package dev.space.cli;

import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/// The training run of the AOT cache: loads, in one process, what short commands and the daemon
/// load. The launcher calls it after each build.
@Command(
    name = "train",
    hidden = true,
    description = "Exercise the program for its start-up cache.")
final class TrainCommand implements Callable<Integer> {

  private final Root root;

  @Option(names = "--scratch", paramLabel = "DIR", description = "A folder to work in.")
  private Path scratch = Path.of("/nonexistent");

  TrainCommand(Root root) {
    this.root = root;
  }

  @Override
  public Integer call() {
    Surroundings quiet = quiet(root.surroundings());
    for (List<String> words :
        List.of(
            List.of("--help"),
            List.of("sandbox", "ls", "--help"),
            List.of(
                "sandbox", "ls", "--url", "http://127.0.0.1:1", "--data-dir", scratch.toString()),
            List.of("no-such-command"))) {
      Main.run(quiet, words.toArray(String[]::new));
    }
    return ExitStatus.OK;
  }

  private static Surroundings quiet(Surroundings real) {
    return new Surroundings(
        real.env(),
        new java.io.ByteArrayInputStream(new byte[0]),
        OutputStream.nullOutputStream(),
        new PrintStream(new ByteArrayOutputStream(), true, StandardCharsets.UTF_8),
        false,
        false,
        false,
        real.home(),
        real.clock());
  }
}
