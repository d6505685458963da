package dev.space.cli;

import dev.space.app.Version;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import tools.jackson.databind.node.ObjectNode;

@Command(name = "version", description = "Show the version.")
final class VersionCommand implements Callable<Integer> {

  private final Root root;

  VersionCommand(Root root) {
    this.root = root;
  }

  @Override
  public Integer call() {
    ObjectNode version = Json.object().put("version", Version.current());
    version.put("java", Runtime.version().toString());
    root.printer().result(version, "space " + Version.current());
    return ExitStatus.OK;
  }
}
