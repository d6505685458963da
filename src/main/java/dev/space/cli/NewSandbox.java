package dev.space.cli;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import picocli.CommandLine.Option;
import tools.jackson.databind.node.ObjectNode;

/// Options that describe a new sandbox, shared by `run` and `sandbox create`.
final class NewSandbox {

  @Option(
      names = {"-t", "--template"},
      defaultValue = "base",
      paramLabel = "REF",
      description = "Template: name, name:tag or digest (default: base).")
  private String template = "base";

  @Option(names = "--snapshot", paramLabel = "ID", description = "Start from a snapshot instead.")
  private Optional<String> snapshot = Optional.empty();

  @Option(names = "--cpus", paramLabel = "N", description = "Virtual CPUs.")
  private Optional<Integer> cpus = Optional.empty();

  @Option(names = "--memory", paramLabel = "MIB", description = "Memory in MiB.")
  private Optional<Integer> memory = Optional.empty();

  @Option(names = "--disk", paramLabel = "MIB", description = "Size of the writable disk in MiB.")
  private Optional<Integer> disk = Optional.empty();

  @Option(
      names = {"-e", "--env"},
      paramLabel = "NAME[=VALUE]",
      description = "Environment of its commands; repeatable. Without a value: one's own.")
  private List<String> env = List.of();

  @Option(
      names = {"-m", "--metadata"},
      paramLabel = "KEY=VALUE",
      description = "Labels of one's own; repeatable.")
  private Map<String, String> metadata = new LinkedHashMap<>();

  ObjectNode request(Surroundings surroundings) {
    ObjectNode body = Json.object();
    snapshot.ifPresentOrElse(
        id -> body.put("snapshot_id", id), () -> body.put("template", template));
    ObjectNode resources = Json.object();
    cpus.ifPresent(n -> resources.put("vcpus", n));
    memory.ifPresent(n -> resources.put("memory_mib", n));
    disk.ifPresent(n -> resources.put("disk_mib", n));
    if (!resources.isEmpty()) {
      body.set("resources", resources);
    }
    put(body, "env", Environment.of(env, surroundings.env()));
    put(body, "metadata", metadata);
    return body;
  }

  private static void put(ObjectNode body, String name, Map<String, String> map) {
    if (!map.isEmpty()) {
      ObjectNode object = body.putObject(name);
      map.forEach(object::put);
    }
  }
}
