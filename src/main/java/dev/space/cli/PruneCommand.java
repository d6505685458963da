package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import tools.jackson.databind.JsonNode;

@Command(
    name = "prune",
    description = {
      "Delete what is of no more use: failed and stopped sandboxes, and templates without a tag"
          + " that no sandbox or snapshot needs.",
      "With --all also every snapshot and every suspended sandbox."
    },
    footerHeading = "%nExamples:%n",
    footer = {"  space prune --dry-run", "  space prune"})
final class PruneCommand implements Callable<Integer> {

  private static final int LIST_MAX = 10_000;

  private final Root root;

  @Option(names = "--all", description = "Also snapshots and suspended sandboxes.")
  private boolean all;

  @Option(
      names = {"-n", "--dry-run"},
      description = "Only say what would be deleted.")
  private boolean dryRun;

  PruneCommand(Root root) {
    this.root = root;
  }

  /// One thing that goes.
  private record Item(String kind, String id, String target) {}

  @Override
  public Integer call() {
    Api api = root.api();
    List<Item> items = new ArrayList<>();
    String states = "?state=failed&state=stopped" + (all ? "&state=suspended" : "");
    for (JsonNode one : Pages.read(api, "/v1/sandboxes" + states, LIST_MAX)) {
      items.add(item("sandbox", Printer.text(one, "id"), "/v1/sandboxes/"));
    }
    if (all) {
      for (JsonNode one : Pages.read(api, "/v1/snapshots?", LIST_MAX)) {
        items.add(item("snapshot", Printer.text(one, "id"), "/v1/snapshots/"));
      }
    }
    for (JsonNode one : Pages.read(api, "/v1/templates?", LIST_MAX)) {
      if (one.path("tags").isEmpty()) {
        items.add(item("template", Printer.text(one, "digest"), "/v1/templates/"));
      }
    }
    List<JsonNode> rows = new ArrayList<>();
    try (Progress progress = root.progress()) {
      for (Item item : items) {
        if (dryRun || isDeleted(api, item, progress)) {
          rows.add(Json.object().put("kind", item.kind()).put("id", item.id()));
        }
      }
    }
    root.printer()
        .list(rows, List.of(Printer.Column.of("KIND", "kind"), Printer.Column.of("ID", "id")));
    return ExitStatus.OK;
  }

  /// Deletes a thing, and waits until it is gone: what comes later may need that. What turns out to
  /// be of use is kept.
  private boolean isDeleted(Api api, Item item, Progress progress) {
    try {
      JsonNode answer = api.delete(item.target());
      if (answer.has("state")) {
        Operations.await(api, answer, progress, root.surroundings().errTerminal());
      }
      return true;
    } catch (SpaceException e) {
      if (e.code() != ErrorCode.CONFLICT) {
        throw e;
      }
      progress.clear();
      root.surroundings().err().println("space: kept: " + e.problem().oneLine());
      return false;
    }
  }

  private static Item item(String kind, String id, String base) {
    return new Item(kind, id, base + Api.part(id));
  }
}
