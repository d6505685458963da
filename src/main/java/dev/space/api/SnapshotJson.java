package dev.space.api;

import dev.space.core.snapshot.Snapshot;
import java.util.Optional;

record SnapshotJson(
    String id,
    String sandboxId,
    Optional<String> name,
    String template,
    String templateDigest,
    ResourcesJson resources,
    String node,
    long bytes,
    String createdAt) {
  static SnapshotJson of(Snapshot s) {
    return new SnapshotJson(
        s.id(),
        s.sandboxId(),
        s.name(),
        s.template(),
        s.templateDigest(),
        ResourcesJson.of(s.resources()),
        s.node(),
        s.bytes(),
        Calls.text(s.createdAt()));
  }
}
