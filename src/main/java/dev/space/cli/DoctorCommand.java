package dev.space.cli;

import dev.space.app.SpaceConfig;
import dev.space.host.Prerequisite;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

@Command(
    name = "doctor",
    description = "Say what this machine has of what SPACE needs, and what to do about the rest.",
    exitCodeListHeading = "%nExit status:%n",
    exitCodeList = {"0:nothing is missing", "1:something is missing"},
    footerHeading = "%nExamples:%n",
    footer = {
      "  space doctor",
      "  space doctor -o json | jq '.[] | select(.state != \"ok\")'",
      "  space doctor --production"
    })
final class DoctorCommand implements Callable<Integer> {

  private final Root root;

  @Option(
      names = "--production",
      description =
          "Check instead whether people who distrust each other may share this machine, with"
              + " Firecracker: every point of docs/firecracker-host.md.")
  private boolean production;

  DoctorCommand(Root root) {
    this.root = root;
  }

  @Override
  public Integer call() {
    Logging.quiet();
    SpaceConfig config = root.config(Optional.empty(), Map.of());
    List<Prerequisite> all =
        production ? root.assembly().examineForProduction(config) : root.assembly().examine(config);
    List<JsonNode> rows = new ArrayList<>();
    boolean missing = false;
    for (Prerequisite one : all) {
      missing |= one.state() == Prerequisite.State.MISSING;
      ObjectNode row = Json.object().put("name", one.name());
      row.put("state", one.state().name().toLowerCase(Locale.ROOT)).put("found", one.found());
      one.remedy().ifPresent(remedy -> row.put("remedy", remedy));
      one.debPackage().ifPresent(name -> row.put("package", name));
      rows.add(row);
    }
    root.printer()
        .list(
            rows,
            List.of(
                Printer.Column.of("STATE", "state"),
                Printer.Column.of("WHAT", "name"),
                Printer.Column.of("FOUND", "found"),
                Printer.Column.of("REMEDY", "remedy")));
    return missing ? ExitStatus.FAILURE : ExitStatus.OK;
  }
}
