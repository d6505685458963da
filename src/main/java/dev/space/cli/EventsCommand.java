package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.wire.EventReader;
import dev.space.wire.WireException;
import dev.space.wire.WireRequest;
import dev.space.wire.WireResponse;
import java.io.IOException;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import tools.jackson.databind.JsonNode;

@Command(
    name = "events",
    description = "Show lifecycle events as they happen, until interrupted.",
    footerHeading = "%nExamples:%n",
    footer = {"  space events -f", "  space events -f -o json | jq .type"})
final class EventsCommand implements Callable<Integer> {

  private final Root root;

  @Option(
      names = {"-f", "--follow"},
      description = "Follow; it always does.")
  void follow(boolean asked) {
    // Taken for habit's sake: there is no other way to watch events.
  }

  @Option(
      names = "--after",
      paramLabel = "SEQ",
      description = "Begin after this number (0: with the oldest that is kept).")
  private Optional<Long> after = Optional.empty();

  EventsCommand(Root root) {
    this.root = root;
  }

  @Override
  public Integer call() {
    Api api = root.api();
    Printer printer = root.printer();
    Optional<String> seen = after.map(String::valueOf);
    while (true) {
      WireRequest request =
          api.request("GET", "/v1/events")
              .header("Accept", "text/event-stream")
              .silentFor(Api.SILENCE);
      if (seen.isPresent()) {
        request = request.header("Last-Event-ID", seen.get());
      }
      try (WireResponse response = api.open(request)) {
        EventReader events = response.events();
        for (Optional<EventReader.Event> next = events.next();
            next.isPresent();
            next = events.next()) {
          show(printer, Json.read(next.get().data()));
          seen = next.get().id().isPresent() ? next.get().id() : seen;
        }
      } catch (WireException e) {
        // Taken up again after the last event that was seen; opening tells if the daemon is gone.
      } catch (IOException e) {
        throw Problem.of(ErrorCode.INTERNAL, "The events can't be read").because(e).toException(e);
      }
    }
  }

  private void show(Printer printer, JsonNode event) {
    if (root.json()) {
      printer.line(Json.compact(event));
      return;
    }
    String about = Printer.text(event, "sandbox_id") + "  " + Printer.text(event, "operation_id");
    printer.line(
        Printer.text(event, "at")
            + "  "
            + Printer.text(event, "type")
            + "  "
            + about
            + (event.path("data").isEmpty() ? "" : "  " + Json.compact(event.path("data"))));
  }
}
