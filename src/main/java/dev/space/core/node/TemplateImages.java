package dev.space.core.node;

import dev.space.core.template.Template;
import java.nio.file.Path;

/// Where the images of built templates lie on a node. A template's files never change once it has
/// its digest, so paths may be kept as long as the template isn't deleted.
public interface TemplateImages {

  /// The read-only ext4 image that becomes `vda`.
  ///
  /// @throws dev.space.core.error.SpaceException TEMPLATE_NOT_FOUND when this node has no such
  ///   template
  Path root(String digest);

  /// What the recipe gave: `start` and `ready` are run once, before the base snapshot is taken.
  ///
  /// @throws dev.space.core.error.SpaceException TEMPLATE_NOT_FOUND when this node has no such
  ///   template
  Template.Defaults defaults(String digest);

  /// Removes a template's files; what is not there is no error. The node calls it when nothing
  /// needs them any more.
  void remove(String digest);
}
