package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.wire.EventReader;
import dev.space.wire.WireRequest;
import dev.space.wire.WireResponse;
import java.io.IOException;
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
    footer = {"  space ops ls --sandbox ID", "  space ops wait ID", "  space ops log ID"})
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

  @Command(
      name = "log",
      description = "Print the log of a template build, and follow it while it is built.")
  int log(@Parameters(paramLabel = "ID") String id) {
    Api api = root.api();
    WireRequest request =
        api.request("GET", "/v1/operations/" + Api.part(id) + "/log")
            .header("Accept", "text/event-stream")
            .silentFor(Api.SILENCE);
    try (WireResponse response = api.open(request)) {
      EventReader events = response.events();
      for (Optional<EventReader.Event> event = events.next();
          event.isPresent();
          event = events.next()) {
        JsonNode data = Json.read(event.get().data());
        switch (event.get().name()) {
          case "log" ->
              root.printer()
                  .line(root.json() ? Json.compact(data) : Printer.printable(data, "text"));
          case "error" -> throw Api.problem(data).toException();
          default -> {
            // The end, with the operation as "get" shows it, and whatever later versions add.
          }
        }
      }
      return ExitStatus.OK;
    } catch (IOException e) {
      throw Problem.of(ErrorCode.INTERNAL, "The log can't be read to its end")
          .because(e)
          .remedy("Ask for it again.")
          .toException(e);
    }
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
