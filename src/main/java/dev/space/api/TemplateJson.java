package dev.space.api;

import dev.space.core.template.Template;
import java.util.List;
import java.util.Optional;

record TemplateJson(
    String digest,
    String name,
    List<String> tags,
    DefaultsJson defaults,
    long rootBytes,
    String createdAt) {

  /// Names of the environment's variables only: values may be secrets.
  record DefaultsJson(
      List<String> envNames,
      Optional<String> user,
      Optional<String> workdir,
      Optional<List<String>> start,
      Optional<String> ready,
      ResourcesJson resources,
      int warm) {}

  static TemplateJson of(Template t) {
    return new TemplateJson(
        t.digest(),
        t.name(),
        t.tags(),
        new DefaultsJson(
            t.defaults().env().keySet().stream().sorted().toList(),
            t.defaults().user(),
            t.defaults().workdir(),
            t.defaults().start(),
            t.defaults().ready(),
            ResourcesJson.of(t.defaults().resources()),
            t.defaults().warm()),
        t.rootBytes(),
        Calls.text(t.createdAt()));
  }
}
