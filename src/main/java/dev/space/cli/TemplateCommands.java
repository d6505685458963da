package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.JsonNode;

@Command(
    name = "template",
    description = "Templates: what sandboxes are made from.",
    footerHeading = "%nExamples:%n",
    footer = {
      "  space template ls",
      "  space template build templates/base -t mine:1",
      "  space template tag mine:1 mine:latest"
    })
final class TemplateCommands extends Group {

  private final Root root;

  TemplateCommands(Root root) {
    this.root = root;
  }

  @Command(name = "ls", description = "List templates, newest first.")
  int list(
      @Option(
              names = "--limit",
              defaultValue = "1000",
              description = "At most this many (default 1000).")
          int limit) {
    root.printer()
        .list(
            Pages.read(root.api(), "/v1/templates?", limit),
            List.of(
                Printer.Column.of("NAME", "name"),
                new Printer.Column("TAGS", node -> words(node.path("tags"))),
                new Printer.Column("DIGEST", node -> shorter(Printer.text(node, "digest"))),
                Ages.size("SIZE", "root_bytes"),
                Ages.column("AGE", "created_at", root.surroundings().clock())));
    return ExitStatus.OK;
  }

  @Command(name = "get", description = "Show a template.")
  int get(@Parameters(paramLabel = "REF") String ref) {
    root.printer().one(root.api().get(path(ref)));
    return ExitStatus.OK;
  }

  @Command(name = "rm", description = "Delete templates with all their tags.")
  int remove(@Parameters(arity = "1..*", paramLabel = "REF") List<String> refs) {
    Api api = root.api();
    for (String ref : refs) {
      root.printer().result(api.delete(path(ref)), ref);
    }
    return ExitStatus.OK;
  }

  @Command(name = "tag", description = "Point a tag at a template, moving it if need be.")
  int tag(
      @Parameters(index = "0", paramLabel = "REF", description = "The template.") String ref,
      @Parameters(index = "1", paramLabel = "NAME:TAG", description = "The tag.") String tag) {
    JsonNode template = root.api().post(path(ref) + "/tags", Json.object().put("tag", tag));
    root.printer().result(template, tag);
    return ExitStatus.OK;
  }

  @Command(
      name = "build",
      description = "Build a template from a folder with a template.yaml.",
      footerHeading = "%nExamples:%n",
      footer = {"  space template build ./my-template -t mine:1"})
  int build(
      @Parameters(paramLabel = "DIR", description = "The folder.") Path dir,
      @Option(
              names = {"-t", "--tag"},
              required = true,
              paramLabel = "NAME:TAG",
              description = "What it is called.")
          String tag) {
    if (!Files.isDirectory(dir)) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, dir + " is not a folder")
          .remedy("Name a folder that holds a template.yaml.")
          .toException();
    }
    try (Progress progress = root.progress()) {
      JsonNode operation =
          RecipeBuild.run(root.api(), dir, tag, progress, root.surroundings().errTerminal());
      root.printer().result(operation, tag + "  " + Operations.result(operation));
    }
    return ExitStatus.OK;
  }

  private static String path(String ref) {
    return "/v1/templates/" + Api.part(ref);
  }

  private static String words(JsonNode array) {
    StringBuilder words = new StringBuilder();
    array.forEach(word -> words.append(words.isEmpty() ? "" : ", ").append(word.asString()));
    return words.isEmpty() ? "-" : words.toString();
  }

  private static String shorter(String digest) {
    return digest.length() > 19 ? digest.substring(0, 19) : digest;
  }
}
