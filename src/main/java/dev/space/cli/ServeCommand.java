package dev.space.cli;

import dev.space.app.SpaceConfig;
import dev.space.core.error.Problem;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

@Command(
    name = "serve",
    description = {
      "Run the service until it is stopped (Ctrl-C, SIGTERM).",
      "Settings come from flags, then SPACE_… variables, then config.yaml in the data directory;"
          + " docs/configuration.md lists them."
    },
    footerHeading = "%nExamples:%n",
    footer = {
      "  space serve",
      "  space serve --listen 0.0.0.0:8700 --data-listen 0.0.0.0:8701",
      "  space serve --set limits.vms_max=20 --set on_stop=suspend"
    })
final class ServeCommand implements Callable<Integer> {

  private final Root root;

  @Option(
      names = "--listen",
      paramLabel = "HOST:PORT",
      description = "Control plane (default 127.0.0.1:8700).")
  private Optional<String> listen = Optional.empty();

  @Option(
      names = "--data-listen",
      paramLabel = "HOST:PORT",
      description = "Data plane (default 127.0.0.1:8701).")
  private Optional<String> dataListen = Optional.empty();

  @Option(names = "--config", paramLabel = "FILE", description = "Configuration file.")
  private Optional<Path> file = Optional.empty();

  @Option(
      names = "--set",
      paramLabel = "KEY=VALUE",
      description = "Any setting by its dotted name; repeatable.")
  private Map<String, String> settings = new LinkedHashMap<>();

  ServeCommand(Root root) {
    this.root = root;
  }

  @Override
  public Integer call() throws InterruptedException {
    Map<String, String> flags = new LinkedHashMap<>(settings);
    listen.ifPresent(address -> flags.put("listen", address));
    dataListen.ifPresent(address -> flags.put("data_listen", address));
    SpaceConfig config = root.config(file, flags);
    Optional<Problem> lacking = root.assembly().lacking(config);
    if (lacking.isPresent()) {
      throw lacking.get().toException();
    }
    Assembly.Running running = root.assembly().start(config, true);
    try (OnExit _ = OnExit.of(running::close)) {
      root.surroundings()
          .err()
          .println(
              "space: ready; control plane "
                  + running.controlUrl()
                  + ", data plane "
                  + running.dataUrl());
      running.newKeyFile().ifPresent(file -> tellKey(Path.of(file)));
      running.awaitStop();
    }
    return ExitStatus.OK;
  }

  /// The first key is shown once, to a person; what is redirected into a log is not told secrets.
  private void tellKey(Path file) {
    Surroundings surroundings = root.surroundings();
    String key =
        surroundings.errTerminal() ? root.location().key() + ", kept in " + file : file.toString();
    surroundings.err().println("space: API key: " + key);
  }
}
