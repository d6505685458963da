package dev.space.cli;

import dev.space.app.ConfigReader;
import dev.space.app.Rehearsal;
import dev.space.app.SpaceConfig;
import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/// The training run of the AOT cache: loads, in one process, what short commands and the daemon
/// load. The launcher calls it after each build.
@Command(
    name = "train",
    hidden = true,
    description = "Exercise the program for its start-up cache.")
final class TrainCommand implements Callable<Integer> {

  private static final int ROUNDS = 100;
  private static final int COMMANDS = 2;

  private final Root root;

  @Option(names = "--scratch", paramLabel = "DIR", description = "A folder to work in.")
  private Path scratch = Path.of("/nonexistent");

  TrainCommand(Root root) {
    this.root = root;
  }

  @Override
  public Integer call() {
    Surroundings quiet = quiet(root.surroundings());
    Logging.quiet();
    Map<String, String> flags =
        Map.of(
            "data_dir", scratch.toString(),
            "listen", "127.0.0.1:0",
            "data_listen", "127.0.0.1:0",
            "e2b.listen", "",
            "vmm", "simulated");
    SpaceConfig config =
        ConfigReader.read(Optional.empty(), Map.of(), flags, root.surroundings().home());
    try (Assembly.Running running = root.assembly().start(config, true)) {
      for (String words :
          List.of(
              "--help",
              "no-such-command",
              "sandbox create -m a=b",
              "sandbox ls",
              "sandbox ls -o json",
              "template ls",
              "ops ls",
              "run -- echo hello",
              "sandbox get no-such-sandbox")) {
        String[] args = (words + " --data-dir " + scratch).split(" ");
        Main.run(quiet, words.startsWith("run --") ? runArgs() : args);
      }
      running.newKeyFile();
      exercise(new Api(running.controlUrl(), key()));
    }
    Rehearsal.run(config.boot().agent(), scratch, root.surroundings().env());
    return ExitStatus.OK;
  }

  private String key() {
    return new Location(root.surroundings(), Optional.empty(), Optional.of(scratch)).key();
  }

  /// The daemon's busiest paths, often enough that the cache knows how their methods behave: the
  /// first requests to a new daemon are then compiled well at once.
  private void exercise(Api api) {
    Progress quiet = new Progress(quiet(root.surroundings()), true);
    for (int i = 0; i < ROUNDS; i++) {
      ObjectNode body = Json.object().put("template", "base");
      String sandbox = done(api, api.post("/v1/sandboxes", body), quiet);
      String path = "/v1/sandboxes/" + sandbox;
      var command =
          new CommandRun(
              List.of("echo", "hello"),
              Map.of(),
              Optional.empty(),
              Optional.empty(),
              false,
              Optional.empty());
      for (int j = 0; j < COMMANDS; j++) {
        command.runIn(api, sandbox, quiet(root.surroundings()));
      }
      for (String verb : List.of("pause", "wake", "suspend", "wake")) {
        done(api, api.post(path + "/" + verb, Json.object()), quiet);
      }
      api.get(path);
      done(api, api.delete(path), quiet);
    }
  }

  private static String done(Api api, JsonNode accepted, Progress progress) {
    Operations.await(api, accepted, progress, false);
    return accepted.path("sandbox_id").asString();
  }

  /// What follows `--` is the command's, so the data directory has to come first.
  private String[] runArgs() {
    return new String[] {"run", "--data-dir", scratch.toString(), "--", "echo", "hello"};
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
