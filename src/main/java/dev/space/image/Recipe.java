package dev.space.image;

import dev.space.core.template.Resources;
import dev.space.core.template.Template;
import dev.space.core.template.TemplateRef;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// A template's recipe, as `template.yaml` gives it; see docs/templates.md.
///
/// @param run commands for the image's shell, in order, as root
/// @param start command that the node starts before it takes the base snapshot
record Recipe(
    Optional<String> name,
    Base from,
    List<String> packages,
    List<AddedFile> files,
    List<String> run,
    Optional<User> user,
    Map<String, String> env,
    Optional<String> workdir,
    Optional<List<String>> start,
    Optional<String> ready,
    Resources resources,
    int warm) {

  /// What the image is built upon.
  sealed interface Base {
    /// A Debian release by its codename; empty means the host's own.
    record Release(Optional<String> codename) implements Base {}

    record Parent(TemplateRef ref) implements Base {}
  }

  /// A file or directory of the recipe directory that goes into the image.
  ///
  /// @param mode permission bits of files; empty keeps what the recipe directory has
  /// @param owner `user` or `user:group` as the image knows them
  record AddedFile(String src, String dest, Optional<Integer> mode, String owner) {}

  /// The account that is made, and that commands run as when nobody is named.
  record User(String name, int uid, String home, boolean sudo) {}

  Template.Defaults defaults() {
    return new Template.Defaults(env, user.map(User::name), workdir, start, ready, resources, warm);
  }
}
