package dev.space.cli;

import java.util.List;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(
    name = "snapshot",
    description = "Snapshots of sandboxes; take one with: space sandbox snapshot ID",
    footerHeading = "%nExamples:%n",
    footer = {"  space snapshot ls", "  space sandbox create --snapshot ID"})
final class SnapshotCommands extends Group {

  private final Root root;

  SnapshotCommands(Root root) {
    this.root = root;
  }

  @Command(name = "ls", description = "List snapshots, newest first.")
  int list(
      @Option(names = "--sandbox", paramLabel = "ID", description = "Only those of one sandbox.")
          Optional<String> sandbox,
      @Option(
              names = "--limit",
              defaultValue = "1000",
              description = "At most this many (default 1000).")
          int limit) {
    String filter = sandbox.map(id -> "&sandbox_id=" + Api.part(id)).orElse("");
    root.printer()
        .list(
            Pages.read(root.api(), "/v1/snapshots?" + filter, limit),
            List.of(
                Printer.Column.of("ID", "id"),
                Printer.Column.of("NAME", "name"),
                Printer.Column.of("SANDBOX", "sandbox_id"),
                Printer.Column.of("TEMPLATE", "template"),
                Ages.size("SIZE", "bytes"),
                Ages.column("AGE", "created_at", root.surroundings().clock())));
    return ExitStatus.OK;
  }

  @Command(name = "rm", description = "Delete snapshots.")
  int remove(@Parameters(arity = "1..*", paramLabel = "ID") List<String> ids) {
    Api api = root.api();
    for (String id : ids) {
      root.printer().result(api.delete("/v1/snapshots/" + Api.part(id)), id);
    }
    return ExitStatus.OK;
  }
}
