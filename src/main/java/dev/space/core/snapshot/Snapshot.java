package dev.space.core.snapshot;

import dev.space.core.template.Resources;
import java.time.Instant;
import java.util.Optional;

/// Memory, device state and disk of a sandbox at one instant; a source for creates.
///
/// @param sandboxId where it was taken; that sandbox may be gone by now
/// @param name the caller's own name for it
/// @param bytes what it occupies on the disk
public record Snapshot(
    String id,
    String project,
    String sandboxId,
    Optional<String> name,
    String template,
    String templateDigest,
    Resources resources,
    String node,
    long bytes,
    Instant createdAt) {}
