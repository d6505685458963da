package dev.space.core.node;

import dev.space.core.guest.Guest;
import dev.space.core.template.Resources;

/// What a node needs to make a sandbox run.
///
/// @param source what it is restored from
/// @param adoption identity, environment and defaults the guest gets
public record LaunchSpec(
    String sandboxId, Source source, Resources resources, Guest.Adoption adoption) {

  public sealed interface Source {
    /// The base snapshot of a template in the sandbox's shape, made first when it isn't there yet.
    record Template(String digest) implements Source {}

    record Snapshot(String snapshotId) implements Source {}
  }
}
