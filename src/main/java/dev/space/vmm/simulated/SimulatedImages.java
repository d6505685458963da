package dev.space.vmm.simulated;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.node.TemplateImages;
import dev.space.core.template.Template;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/// Templates for simulated VMs, which have no root image: only their defaults count.
public final class SimulatedImages implements TemplateImages {

  private final Map<String, Template.Defaults> templates = new ConcurrentHashMap<>();

  /// Adds a template, or gives it other defaults.
  public void add(String digest, Template.Defaults defaults) {
    templates.put(digest, defaults);
  }

  @Override
  public Path root(String digest) {
    defaults(digest);
    return Path.of("/nonexistent", digest.replace(':', '-'), "root.img");
  }

  @Override
  public Template.Defaults defaults(String digest) {
    Template.Defaults defaults = templates.get(digest);
    if (defaults == null) {
      throw Problem.of(ErrorCode.TEMPLATE_NOT_FOUND, "There is no template " + digest)
          .toException();
    }
    return defaults;
  }

  @Override
  public void remove(String digest) {
    templates.remove(digest);
  }
}
