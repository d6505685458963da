package dev.space.cli;

import dev.space.app.SpaceConfig;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import tools.jackson.databind.node.ObjectNode;

@Command(
    name = "setup",
    description = {
      "Prepare this machine: packages (as root), guest kernel, base template.",
      "Does what is missing only; goes on where an interrupted one stopped."
    },
    footerHeading = "%nExamples:%n",
    footer = {
      "  space setup",
      "  space setup --data-dir /srv/space",
      "  space setup --template code-interpreter"
    })
final class SetupCommand implements Callable<Integer> {

  /// The recipes in `templates/` that a machine doesn't get by itself, and what they are called.
  private static final Map<String, String> SHIPPED =
      Map.of("code-interpreter", "code-interpreter-v1:latest");

  private final Root root;

  @Option(
      names = "--template",
      paramLabel = "NAME",
      description = "Also build this template, which ships with the project: code-interpreter.")
  private List<String> templates = List.of();

  SetupCommand(Root root) {
    this.root = root;
  }

  @Override
  public Integer call() {
    Logging.quiet();
    Map<String, String> wanted = new TreeMap<>();
    templates.forEach(name -> wanted.put(name, tag(name)));
    SpaceConfig config = root.config(Optional.empty(), Map.of());
    ObjectNode result =
        Json.object().put("ready", true).put("data_dir", config.dataDir().toString());
    StringBuilder said =
        new StringBuilder("This machine is ready. Data directory: ").append(config.dataDir());
    try (Progress progress = root.progress()) {
      root.assembly().prepare(config, progress::step);
      if (!wanted.isEmpty()) {
        try (Service service = Service.findOrStart(root, progress)) {
          wanted.forEach(
              (name, tag) -> said.append('\n').append(build(service.api(), name, tag, progress)));
        }
        wanted.values().forEach(result.putArray("templates")::add);
      }
    }
    root.printer().result(result, said.toString());
    return ExitStatus.OK;
  }

  private static String tag(String name) {
    return Optional.ofNullable(SHIPPED.get(name))
        .orElseThrow(
            () ->
                Problem.of(ErrorCode.INVALID_REQUEST, "no template '" + name + "' ships with this")
                    .remedy("Name one of: " + String.join(", ", SHIPPED.keySet()) + ".")
                    .toException());
  }

  private String build(Api api, String name, String tag, Progress progress) {
    if (isThere(api, tag)) {
      return tag
          + " is there. To build it anew: space template build templates/"
          + name
          + " -t "
          + tag;
    }
    Path recipe = root.surroundings().home().resolve("templates").resolve(name);
    RecipeBuild.run(api, recipe, tag, progress, root.surroundings().errTerminal());
    return tag + " is built.";
  }

  private static boolean isThere(Api api, String tag) {
    try {
      api.get("/v1/templates/" + Api.part(tag));
      return true;
    } catch (SpaceException e) {
      if (e.code() == ErrorCode.TEMPLATE_NOT_FOUND) {
        return false;
      }
      throw e;
    }
  }
}
