package dev.space.core.template;

import java.io.InputStream;
import java.util.function.Function;

/// Makes template images out of recipes. The steps are apart so that a bad recipe is refused in the
/// request itself and only the long work runs in the operation.
public interface TemplateBuilder {

  /// Unpacks a recipe directory from a tar stream (plain or gzip) and checks the recipe.
  ///
  /// @throws dev.space.core.error.SpaceException RECIPE_INVALID with the key and line at fault,
  ///   BODY_TOO_LARGE, MALFORMED_BODY when it is no tar stream or an entry would leave the
  ///   directory
  Staged stage(InputStream recipeTar);

  /// An unpacked, checked recipe directory, which belongs to its holder until it is closed.
  interface Staged extends AutoCloseable {
    /// The same recipe and files have the same fingerprint: a hash in lower-case hex.
    String fingerprint();

    /// Builds the image and puts it in its place. Blocks for as long as it takes; interrupting the
    /// thread ends it. Whatever goes wrong, nothing half-made stays.
    ///
    /// @param resolve gives the digest of a template that the recipe builds upon
    /// @throws dev.space.core.error.SpaceException TEMPLATE_BUILD_FAILED with the end of the
    ///   build's output, DISK_FULL, PREREQUISITE_MISSING, CANCELLED
    Built build(Function<TemplateRef, String> resolve, BuildLog log);

    /// Removes the directory.
    @Override
    void close();
  }

  /// @param digest `sha256:…` over the recipe, its files and the content of the root file system
  /// @param rootBytes size of the root image as it occupies the disk
  record Built(String digest, Template.Defaults defaults, long rootBytes) {}

  /// Takes what a build says.
  interface BuildLog {
    /// A step begins; one line for people.
    void step(String text);

    /// One line of output, without its end of line, at most 4 KiB long.
    void line(String text);
  }
}
