package dev.space.cli;

import java.util.List;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.JsonNode;

@Command(
    name = "ops",
    description = "Operations: lifecycle changes and their outcome.",
    footerHeading = "%nExamples:%n",
    footer = {"  space ops ls --sandbox ID", "  space ops wait ID"})
final class OpsCommands extends Group {

  private final Root root;

  OpsCommands(Root root) {
    this.root = root;
  }

  @Command(name = "get", description = "Show an operation.")
  int get(@Parameters(paramLabel = "ID") String id) {
    root.printer().one(root.api().get("/v1/operations/" + Api.part(id)));
    return ExitStatus.OK;
  }

  @Command(name = "wait", description = "Wait until an operation is over; fails as it failed.")
  int await(@Parameters(paramLabel = "ID") String id) {
    Api api = root.api();
    JsonNode operation = api.get("/v1/operations/" + Api.part(id));
    try (Progress progress = root.progress()) {
      root.printer()
          .one(Operations.await(api, operation, progress, root.surroundings().errTerminal()));
    }
    return ExitStatus.OK;
  }

  @Command(name = "ls", description = "List operations, newest first.")
  int list(
      @Option(names = "--sandbox", paramLabel = "ID", description = "Only those of one sandbox.")
          Optional<String> sandbox,
      @Option(
              names = "--limit",
              defaultValue = "50",
              description = "At most this many (default 50).")
          int limit) {
    String filter = sandbox.map(id -> "&sandbox_id=" + Api.part(id)).orElse("");
    List<JsonNode> rows = Pages.read(root.api(), "/v1/operations?" + filter, limit);
    root.printer()
        .list(
            rows,
            List.of(
                Printer.Column.of("ID", "id"),
                Printer.Column.of("KIND", "kind"),
                Printer.Column.of("SANDBOX", "sandbox_id"),
                Printer.Column.of("STATE", "state"),
                Ages.column("AGE", "created_at", root.surroundings().clock()),
                Printer.Column.of("ERROR", "error/detail")));
    return ExitStatus.OK;
  }
}
