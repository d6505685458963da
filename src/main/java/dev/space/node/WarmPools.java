package dev.space.node;

import dev.space.core.template.Resources;

/// Idle VMs that wait for an owner, per template and shape.
public interface WarmPools {

  /// Keeps `count` warm VMs of a template in a shape from now on; they are made in the background.
  /// 0 ends those there are: when a tag moves, the digest it led to before gets a target of 0.
  void target(String templateDigest, Resources resources, int count);
}
