package dev.space.image;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.template.TemplateBuilder;
import dev.space.core.template.TemplateRef;
import dev.space.host.DiskFull;
import dev.space.host.Processes;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.Optional;
import java.util.concurrent.Semaphore;
import java.util.function.Function;
import java.util.stream.Stream;

/// Builds templates: unpacks and checks the recipe, then makes the image by [ImageBuild]. One build
/// runs at a time; the next waits.
public final class ImageBuilder implements TemplateBuilder {

  static final String RECIPE = "template.yaml";

  private final TemplateStore store;
  private final Path cache;
  private final Processes processes;
  private final Optional<String> mirror;
  private final Semaphore turn = new Semaphore(1, true);

  /// @param data the service's data directory; downloads are kept in its `cache/apt`
  /// @param mirror where packages come from, as mmdebstrap takes it; empty lets it choose Debian's
  public ImageBuilder(
      TemplateStore store, Path data, Processes processes, Optional<String> mirror) {
    this.store = store;
    this.cache = data.toAbsolutePath().normalize().resolve("cache/apt");
    this.processes = processes;
    this.mirror = mirror;
  }

  @Override
  public Staged stage(InputStream recipeTar) {
    return staged(work -> RecipeArchive.unpack(recipeTar, work.resolve("recipe")));
  }

  /// Stages a recipe directory of this host, such as the base template's.
  public Staged stage(Path recipeDirectory) {
    return staged(work -> copy(recipeDirectory, work.resolve("recipe")));
  }

  private Staged staged(StagedFile.Writer fill) {
    try {
      Files.createDirectories(store.directory());
      Path work = StagedFile.asideOf(store.directory().resolve("build"));
      try {
        Files.createDirectories(work.resolve("recipe"));
        TemplateStore.record(work.resolve("owner"), ProcessHandle.current());
        fill.write(work);
        return new Held(work, parse(work.resolve("recipe")), fingerprint(work.resolve("recipe")));
      } catch (IOException | RuntimeException e) {
        OwnerNamespace.remove(processes, work);
        throw e;
      }
    } catch (IOException e) {
      throw failed("the recipe could not be unpacked", e);
    }
  }

  private static Recipe parse(Path directory) throws IOException {
    Path file = directory.resolve(RECIPE);
    if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
      throw Problem.of(ErrorCode.RECIPE_INVALID, "the recipe directory has no " + RECIPE)
          .remedy("See docs/templates.md for how a recipe looks.")
          .toException();
    }
    if (Files.size(file) > RecipeParser.RECIPE_BYTES_MAX) {
      throw Problem.of(
              ErrorCode.RECIPE_INVALID,
              RECIPE + " is larger than " + RecipeParser.RECIPE_BYTES_MAX / 1024 + " KiB")
          .toException();
    }
    try {
      return RecipeParser.parse(Files.readString(file));
    } catch (CharacterCodingException e) {
      throw Problem.of(ErrorCode.RECIPE_INVALID, RECIPE + " is not UTF-8").toException(e);
    }
  }

  /// A hash over names, kinds, permission bits and content of all that the recipe directory holds.
  static String fingerprint(Path directory) throws IOException {
    MessageDigest digest = Digests.sha256();
    try (Stream<Path> tree = Files.walk(directory)) {
      for (Path path : tree.sorted().toList()) {
        Digests.add(digest, directory.relativize(path).toString());
        if (Files.isSymbolicLink(path)) {
          Digests.add(digest, "link " + Files.readSymbolicLink(path));
        } else if (Files.isDirectory(path)) {
          Digests.add(digest, "directory");
        } else {
          Digests.add(digest, Files.isExecutable(path) ? "program" : "file");
          Digests.add(digest, Digests.ofFile(path));
        }
      }
    }
    return Digests.hex(digest);
  }

  private static void copy(Path from, Path to) throws IOException {
    try (Stream<Path> tree = Files.walk(from)) {
      for (Path path : tree.sorted().toList()) {
        Path target = to.resolve(from.relativize(path).toString());
        if (!Files.isDirectory(target)) {
          Files.copy(path, target, LinkOption.NOFOLLOW_LINKS);
        }
      }
    }
  }

  static SpaceException failed(String what, IOException e) {
    ErrorCode code =
        DiskFull.codeOf(e) == ErrorCode.DISK_FULL
            ? ErrorCode.DISK_FULL
            : ErrorCode.TEMPLATE_BUILD_FAILED;
    return Problem.of(code, what).because(e).toException(e);
  }

  private final class Held implements Staged {
    private final Path work;
    private final Recipe recipe;
    private final String fingerprint;

    Held(Path work, Recipe recipe, String fingerprint) {
      this.work = work;
      this.recipe = recipe;
      this.fingerprint = fingerprint;
    }

    @Override
    public String fingerprint() {
      return fingerprint;
    }

    @Override
    public Built build(Function<TemplateRef, String> resolve, BuildLog log) {
      Optional<Path> parent =
          switch (recipe.from()) {
            case Recipe.Base.Release _ -> Optional.empty();
            case Recipe.Base.Parent(TemplateRef ref) ->
                Optional.of(store.rootTar(resolve.apply(ref)));
          };
      takeTurn(log);
      try {
        ImageBuild build =
            new ImageBuild(recipe, fingerprint, work, store, cache, processes, mirror, log);
        return build.run(parent);
      } catch (IOException e) {
        throw failed("the template could not be built", e);
      } finally {
        turn.release();
      }
    }

    private void takeTurn(BuildLog log) {
      if (turn.tryAcquire()) {
        return;
      }
      log.step("waiting for another build to end");
      try {
        turn.acquire();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw Problem.of(ErrorCode.CANCELLED, "the build was cancelled").toException(e);
      }
    }

    @Override
    public void close() {
      try {
        OwnerNamespace.remove(processes, work);
      } catch (IOException e) {
        throw failed("the build directory could not be removed", e);
      }
    }
  }
}
