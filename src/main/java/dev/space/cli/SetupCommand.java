package dev.space.cli;

import dev.space.app.SpaceConfig;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;

@Command(
    name = "setup",
    description = {
      "Prepare this machine: packages (as root), guest kernel, base template.",
      "Does what is missing only; goes on where an interrupted one stopped."
    },
    footerHeading = "%nExamples:%n",
    footer = {"  space setup", "  space setup --data-dir /srv/space"})
final class SetupCommand implements Callable<Integer> {

  private final Root root;

  SetupCommand(Root root) {
    this.root = root;
  }

  @Override
  public Integer call() {
    Logging.quiet();
    SpaceConfig config = root.config(Optional.empty(), Map.of());
    try (Progress progress = root.progress()) {
      root.assembly().prepare(config, progress::step);
    }
    root.printer()
        .result(
            Json.object().put("ready", true).put("data_dir", config.dataDir().toString()),
            "This machine is ready. Data directory: " + config.dataDir());
    return ExitStatus.OK;
  }
}
