package dev.space.core.store;

import dev.space.core.template.Template;
import dev.space.core.template.TemplateRef;
import java.util.List;
import java.util.Optional;

/// Templates of a project and the tags that lead to them. A template's `tags` are read from the
/// tags as they are, each as `name:tag`, in order; `insert` ignores them.
public interface TemplateRows {

  /// Records a template; does nothing when the project has that digest already.
  void insert(String project, Template template);

  /// What the reference leads to in this project.
  Optional<Template> find(String project, TemplateRef ref);

  Page<Template> list(String project, int limit, Optional<String> cursor);

  /// Points the tag at the digest, moving it if it was elsewhere.
  void tag(String project, TemplateRef.Tagged tag, String digest);

  /// Whether there was such a tag.
  boolean untag(String project, TemplateRef.Tagged tag);

  /// Templates that tags of this name lead to.
  List<Template> tagged(String project, String name);

  /// Forgets the template and its tags; says whether it was there.
  boolean delete(String project, String digest);

  /// Whether any project has this digest.
  boolean anyOf(String digest);
}
