package dev.space.image;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.node.TemplateImages;
import dev.space.core.template.Template;
import dev.space.core.template.TemplateBuilder;
import dev.space.host.Processes;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Optional;
import java.util.stream.Stream;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.json.JsonMapper;

/// The built templates of a node in `<data>/templates/<hex digest>/`: `root.img`, the file system
/// that guests boot; `root.tar.zst`, the same as an archive, which other templates are built upon;
/// `template.json`. What is being built lies beside them and ends in `.partial`.
public final class TemplateStore implements TemplateImages {

  private final Path root;
  private final Processes processes;
  private final JsonMapper json = JsonMapper.shared();

  /// @param data the service's data directory
  public TemplateStore(Path data, Processes processes) {
    this.processes = processes;
    this.root = data.toAbsolutePath().normalize().resolve("templates");
  }

  /// What is recorded beside an image.
  record Manifest(
      String digest,
      Template.Defaults defaults,
      long rootBytes,
      String rootTarSha256,
      String recipe) {}

  Path directory() {
    return root;
  }

  @Override
  public Path root(String digest) {
    Path image = directoryOf(digest).resolve("root.img");
    if (!Files.isRegularFile(image)) {
      throw unknown(digest);
    }
    return image;
  }

  @Override
  public Template.Defaults defaults(String digest) {
    return manifest(digest).orElseThrow(() -> unknown(digest)).defaults();
  }

  /// What was built, when this node has it.
  public Optional<TemplateBuilder.Built> built(String digest) {
    return manifest(digest)
        .filter(_ -> Files.isRegularFile(directoryOf(digest).resolve("root.img")))
        .map(m -> new TemplateBuilder.Built(m.digest(), m.defaults(), m.rootBytes()));
  }

  Path rootTar(String digest) {
    Path tar = directoryOf(digest).resolve("root.tar.zst");
    if (!Files.isRegularFile(tar)) {
      throw unknown(digest);
    }
    return tar;
  }

  @Override
  public void remove(String digest) {
    Path directory = directoryOf(digest);
    if (!Files.exists(directory)) {
      return;
    }
    try {
      Path aside = StagedFile.asideOf(directory);
      Files.move(directory, aside);
      StagedFile.remove(aside);
    } catch (IOException e) {
      throw Problem.of(ErrorCode.INTERNAL, "the files of template " + digest + " can't be removed")
          .because(e)
          .toException(e);
    }
  }

  void write(Path directory, Manifest manifest) throws IOException {
    Files.write(
        directory.resolve("template.json"),
        json.writerWithDefaultPrettyPrinter().writeValueAsBytes(manifest));
  }

  Path place(Path ready, String digest) throws IOException {
    Path target = directoryOf(digest);
    StagedFile.place(ready, target);
    return target;
  }

  /// Removes what builds of a daemon that is gone have left, and ends the tools it had started.
  /// Builds of a process that is alive are left alone.
  public void sweep() {
    if (!Files.isDirectory(root)) {
      return;
    }
    try (Stream<Path> entries = Files.list(root)) {
      for (Path entry : entries.filter(p -> p.toString().endsWith(StagedFile.SUFFIX)).toList()) {
        if (alive(entry.resolve("owner")).isEmpty()) {
          alive(entry.resolve("tool")).ifPresent(Processes::endTree);
          OwnerNamespace.remove(processes, entry);
        }
      }
    } catch (IOException e) {
      throw Problem.of(ErrorCode.INTERNAL, "half-made templates in " + root + " can't be removed")
          .because(e)
          .toException(e);
    }
  }

  /// Notes a process by id and start time, so that a later daemon can tell whether it still runs.
  static void record(Path file, ProcessHandle process) {
    try {
      Instant start = process.info().startInstant().orElse(Instant.EPOCH);
      Files.writeString(file, process.pid() + " " + start.toEpochMilli() + "\n");
    } catch (IOException _) {
      // Without the note a tool ends by itself when its directory goes.
    }
  }

  private static Optional<ProcessHandle> alive(Path file) throws IOException {
    if (!Files.isRegularFile(file)) {
      return Optional.empty();
    }
    String[] words = Files.readString(file).strip().split(" ");
    if (words.length != 2 || !words[0].matches("[0-9]{1,9}") || !words[1].matches("[0-9]{1,18}")) {
      return Optional.empty();
    }
    Instant start = Instant.ofEpochMilli(Long.parseLong(words[1]));
    return ProcessHandle.of(Long.parseLong(words[0]))
        .filter(p -> p.info().startInstant().orElse(Instant.MIN).equals(start));
  }

  private Optional<Manifest> manifest(String digest) {
    Path file = directoryOf(digest).resolve("template.json");
    try {
      return Files.isRegularFile(file)
          ? Optional.of(json.readValue(Files.readAllBytes(file), Manifest.class))
          : Optional.empty();
    } catch (IOException | JacksonException e) {
      throw Problem.of(ErrorCode.INTERNAL, "the template's record " + file + " is damaged")
          .because(e)
          .remedy("Delete the template and build it again.")
          .toException(e);
    }
  }

  private Path directoryOf(String digest) {
    if (!digest.matches("sha256:[0-9a-f]{64}")) {
      throw unknown(digest);
    }
    return root.resolve(digest.substring("sha256:".length()));
  }

  private static SpaceException unknown(String digest) {
    return Problem.of(ErrorCode.TEMPLATE_NOT_FOUND, "this node has no template " + digest)
        .remedy("'space template ls' lists those it has.")
        .toException();
  }
}
