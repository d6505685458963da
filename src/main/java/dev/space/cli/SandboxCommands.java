package dev.space.cli;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

@Command(
    name = "sandbox",
    description = "Sandboxes: create, list, pause, suspend, wake, fork, snapshot, delete.",
    footerHeading = "%nExamples:%n",
    footer = {
      "  space sandbox create -t base --timeout 30m",
      "  space sandbox ls -o json",
      "  space sandbox rm ID"
    })
final class SandboxCommands extends Group {

  private final Root root;

  SandboxCommands(Root root) {
    this.root = root;
  }

  @Command(
      name = "create",
      description = "Create a sandbox and print its id.",
      footerHeading = "%nExamples:%n",
      footer = {
        "  space sandbox create -t base -m owner=me --timeout 30m",
        "  space sandbox create --cpus 2 --memory 1024 --idle-timeout 10m --on-timeout suspend"
      })
  int create(
      @Mixin NewSandbox sandbox,
      @Option(
              names = "--timeout",
              converter = Durations.class,
              paramLabel = "TIME",
              description = "When its time is over (default: never).")
          Optional<Duration> timeout,
      @Option(
              names = "--idle-timeout",
              converter = Durations.class,
              paramLabel = "TIME",
              description = "The same, counted from when it was last used.")
          Optional<Duration> idleTimeout,
      @Option(
              names = "--on-timeout",
              paramLabel = "WHAT",
              description = "What happens then: delete (default) or suspend.")
          Optional<String> onTimeout,
      @Option(names = "--auto-wake", description = "Traffic wakes it when it is suspended.")
          boolean autoWake,
      @Option(names = "--no-wait", description = "Print the operation at once and don't wait.")
          boolean noWait) {
    ObjectNode body = sandbox.request(root.surroundings());
    timeout.ifPresent(time -> body.put("timeout", Durations.text(time)));
    idleTimeout.ifPresent(time -> body.put("idle_timeout", Durations.text(time)));
    onTimeout.ifPresent(what -> body.put("on_timeout", what));
    if (autoWake) {
      body.put("auto_wake", true);
    }
    return change("/v1/sandboxes", body, noWait, "sandbox_id");
  }

  @Command(name = "ls", description = "List sandboxes, newest first.")
  int list(
      @Option(names = "--state", paramLabel = "STATE", description = "Only those in this state.")
          Optional<String> state,
      @Option(
              names = {"-t", "--template"},
              paramLabel = "REF",
              description = "Only those of this template.")
          Optional<String> template,
      @Option(
              names = {"-m", "--metadata"},
              paramLabel = "KEY=VALUE",
              description = "Only those with this label; repeatable.")
          @Nullable Map<String, String> metadata,
      @Option(
              names = {"-q", "--quiet"},
              description = "Print the ids alone.")
          boolean quiet,
      @Option(
              names = "--limit",
              defaultValue = "1000",
              description = "At most this many (default 1000).")
          int limit) {
    StringBuilder filter = new StringBuilder("/v1/sandboxes?");
    state.ifPresent(s -> filter.append("&state=").append(Api.part(s)));
    template.ifPresent(t -> filter.append("&template=").append(Api.part(t)));
    Map<String, String> labels = metadata == null ? Map.of() : metadata;
    labels.forEach((k, v) -> filter.append("&metadata=").append(Api.part(k + "=" + v)));
    List<JsonNode> rows = Pages.read(root.api(), filter.toString(), limit);
    if (quiet && !root.json()) {
      rows.forEach(row -> root.printer().line(Printer.text(row, "id")));
      return ExitStatus.OK;
    }
    root.printer()
        .list(
            rows,
            List.of(
                Printer.Column.of("ID", "id"),
                Printer.Column.of("TEMPLATE", "template"),
                Printer.Column.of("STATE", "state"),
                Printer.Column.of("CPUS", "resources/vcpus"),
                Printer.Column.of("MEMORY", "resources/memory_mib"),
                Ages.column("AGE", "created_at", root.surroundings().clock()),
                Ages.column("EXPIRES IN", "expires_at", root.surroundings().clock())));
    return ExitStatus.OK;
  }

  @Command(name = "get", description = "Show a sandbox.")
  int get(@Parameters(paramLabel = "ID") String id) {
    root.printer().one(root.api().get(path(id)));
    return ExitStatus.OK;
  }

  @Command(name = "rm", description = "Delete sandboxes.")
  int remove(
      @Parameters(arity = "1..*", paramLabel = "ID") List<String> ids,
      @Option(names = "--no-wait", description = "Don't wait until they are gone.")
          boolean noWait) {
    Api api = root.api();
    List<JsonNode> accepted = new ArrayList<>();
    for (String id : ids) {
      accepted.add(api.delete(path(id)));
    }
    try (Progress progress = root.progress()) {
      for (int i = 0; i < ids.size(); i++) {
        JsonNode operation = noWait ? accepted.get(i) : await(api, accepted.get(i), progress);
        root.printer().result(operation, ids.get(i));
      }
    }
    return ExitStatus.OK;
  }

  @Command(name = "pause", description = "Stop its CPUs; memory stays.")
  int pause(@Parameters(paramLabel = "ID") String id) {
    return change(path(id) + "/pause", Json.object(), false, "sandbox_id");
  }

  @Command(name = "suspend", description = "Save memory and disk and free the host's memory.")
  int suspend(
      @Parameters(paramLabel = "ID") String id,
      @Option(
              names = "--disk-only",
              description = "Save the disk alone: processes end, a wake boots it.")
          boolean diskOnly) {
    return change(path(id) + "/suspend", memory(diskOnly), false, "sandbox_id");
  }

  @Command(name = "wake", description = "Bring a paused or suspended sandbox back.")
  int wake(
      @Parameters(paramLabel = "ID") String id,
      @Option(
              names = "--reboot",
              description = "Boot it from its disk, even if its memory was saved.")
          boolean reboot) {
    return change(path(id) + "/wake", memory(reboot), false, "sandbox_id");
  }

  private static ObjectNode memory(boolean without) {
    return without ? Json.object().put("memory", false) : Json.object();
  }

  @Command(name = "fork", description = "Make running copies and print their ids.")
  int fork(
      @Parameters(paramLabel = "ID") String id,
      @Option(
              names = {"-n", "--count"},
              defaultValue = "1",
              paramLabel = "N",
              description = "How many (default 1).")
          int count) {
    return change(path(id) + "/fork", Json.object().put("count", count), false, "result_ids");
  }

  @Command(name = "snapshot", description = "Take a snapshot and print its id.")
  int snapshot(
      @Parameters(paramLabel = "ID") String id,
      @Option(names = "--name", paramLabel = "NAME", description = "A name of one's own.")
          Optional<String> name) {
    ObjectNode body = Json.object();
    name.ifPresent(n -> body.put("name", n));
    return change(path(id) + "/snapshots", body, false, "result_ids");
  }

  @Command(
      name = "extend",
      description = "Set its remaining time, counted from now; 0 takes the limit away.",
      footerHeading = "%nExamples:%n",
      footer = {"  space sandbox extend ID 30m"})
  int extend(
      @Parameters(index = "0", paramLabel = "ID") String id,
      @Parameters(index = "1", paramLabel = "TIME", converter = Durations.class) Duration time) {
    JsonNode sandbox =
        root.api().patch(path(id), Json.object().put("timeout", Durations.text(time)));
    root.printer().result(sandbox, Printer.text(sandbox, "expires_at"));
    return ExitStatus.OK;
  }

  @Command(name = "top", description = "Show what sandboxes use: CPU, memory, disk.")
  int top(@Parameters(arity = "0..*", paramLabel = "ID") @Nullable List<String> ids) {
    Api api = root.api();
    List<String> chosen = new ArrayList<>(ids == null ? List.of() : ids);
    if (chosen.isEmpty()) {
      Pages.read(api, "/v1/sandboxes?&state=running", 1000)
          .forEach(row -> chosen.add(Printer.text(row, "id")));
    }
    List<JsonNode> rows = new ArrayList<>();
    for (String id : chosen) {
      ObjectNode row = Json.object().put("id", id);
      if (api.get(path(id) + "/metrics?limit=0").path("now") instanceof ObjectNode now) {
        row.setAll(now);
      }
      rows.add(row);
    }
    root.printer()
        .list(
            rows,
            List.of(
                Printer.Column.of("ID", "id"),
                Printer.Column.of("CPU %", "cpu_percent"),
                Ages.size("MEMORY", "memory_used_bytes"),
                Ages.size("OF", "memory_total_bytes"),
                Ages.size("DISK", "disk_used_bytes"),
                Ages.size("OF", "disk_total_bytes")));
    return ExitStatus.OK;
  }

  private static String path(String id) {
    return "/v1/sandboxes/" + Api.part(id);
  }

  private JsonNode await(Api api, JsonNode accepted, Progress progress) {
    return Operations.await(api, accepted, progress, root.surroundings().errTerminal());
  }

  /// Makes a lifecycle call, waits for its operation and prints one of its fields.
  private int change(String target, ObjectNode body, boolean noWait, String field) {
    Api api = root.api();
    JsonNode accepted = api.post(target, body);
    if (noWait) {
      root.printer().result(accepted, Printer.text(accepted, "id"));
      return ExitStatus.OK;
    }
    try (Progress progress = root.progress()) {
      JsonNode operation = await(api, accepted, progress);
      JsonNode value = operation.path(field);
      List<String> words = new ArrayList<>();
      if (value.isArray()) {
        value.forEach(word -> words.add(word.asString()));
      } else {
        words.add(value.asString(""));
      }
      root.printer().result(operation, String.join("\n", words));
    }
    return ExitStatus.OK;
  }
}
