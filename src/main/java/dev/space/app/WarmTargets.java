package dev.space.app;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.template.Resources;
import dev.space.core.template.Template;
import dev.space.core.template.TemplateRef;
import dev.space.core.template.TemplateService;
import dev.space.node.WarmPools;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Keeps the node's warm pools in step with the configuration, which names templates by tag: when a
/// tag moves, the pool of what it led to is drained and that of what it leads to now is filled.
final class WarmTargets {

  private static final Logger LOG = LoggerFactory.getLogger(WarmTargets.class);
  private static final int TEMPLATES_MAX = 1000;
  private static final Caller CALLER = new Caller(Caller.DEFAULT_PROJECT, "warm", "warm");

  private record Pool(String digest, Resources resources) {}

  private final List<SpaceConfig.Warm> wanted;
  private final TemplateService templates;
  private final WarmPools pools;
  private Map<Pool, Integer> targets = Map.of();

  WarmTargets(List<SpaceConfig.Warm> wanted, TemplateService templates, WarmPools pools) {
    this.wanted = wanted;
    this.templates = templates;
    this.pools = pools;
  }

  private static Pool pool(Template template) {
    return new Pool(template.digest(), template.defaults().resources());
  }

  /// Looks at the tags as they are now. A tag that leads nowhere has no pool until it does.
  synchronized void refresh() {
    Map<Pool, Integer> next = new HashMap<>();
    // A recipe says itself how many are to be held ready, as long as a tag leads to it.
    for (Template template : templates.list(CALLER, TEMPLATES_MAX, Optional.empty()).items()) {
      if (!template.tags().isEmpty() && template.defaults().warm() > 0) {
        next.put(pool(template), template.defaults().warm());
      }
    }
    for (SpaceConfig.Warm warm : wanted) {
      try {
        Template template = templates.get(CALLER, TemplateRef.parse(warm.template()));
        next.merge(pool(template), warm.count(), Math::max);
      } catch (SpaceException e) {
        if (e.code() != ErrorCode.TEMPLATE_NOT_FOUND) {
          throw e;
        }
        LOG.warn("no warm VMs of '{}' are kept: there is no such template", warm.template());
      }
    }
    targets
        .keySet()
        .forEach(
            pool -> {
              if (!next.containsKey(pool)) {
                pools.target(pool.digest(), pool.resources(), 0);
              }
            });
    next.forEach(
        (pool, count) -> {
          if (!count.equals(targets.get(pool))) {
            pools.target(pool.digest(), pool.resources(), count);
          }
        });
    targets = Map.copyOf(next);
  }
}
