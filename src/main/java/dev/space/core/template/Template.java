package dev.space.core.template;

import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// A built template. Immutable: another build with other content has another digest.
///
/// @param digest `sha256:…` over the recipe and the root image
/// @param name the name it was built under
/// @param tags tags that point at it now
/// @param defaults what a sandbox gets when its create names nothing else
/// @param rootBytes size of the root image as it occupies the disk
public record Template(
    String digest,
    String name,
    List<String> tags,
    Defaults defaults,
    long rootBytes,
    Instant createdAt) {

  /// @param env environment of every process
  /// @param user who runs commands when nobody is named; empty means root
  /// @param workdir where commands run when nothing is named; empty means the user's home
  /// @param start command that is started once, before the base snapshot is taken
  /// @param ready shell command that exits 0 when `start` is ready; polled while building
  /// @param warm restored VMs of the default shape to hold ready, 0 to 64
  public record Defaults(
      Map<String, String> env,
      Optional<String> user,
      Optional<String> workdir,
      Optional<List<String>> start,
      Optional<String> ready,
      Resources resources,
      int warm) {

    /// What a template has whose recipe names nothing.
    public static final Defaults NONE =
        new Defaults(
            Map.of(),
            Optional.empty(),
            Optional.empty(),
            Optional.empty(),
            Optional.empty(),
            Resources.DEFAULT,
            0);
  }
}
