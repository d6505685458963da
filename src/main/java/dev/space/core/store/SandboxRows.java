package dev.space.core.store;

import dev.space.core.sandbox.Sandbox;
import dev.space.core.sandbox.SandboxQuery;
import dev.space.core.sandbox.SandboxState;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// Sandboxes, tombstones included.
public interface SandboxRows {

  Sandbox insert(Sandbox sandbox);

  Sandbox update(Sandbox sandbox);

  Optional<Sandbox> find(String id);

  /// The sandbox if it is this project's.
  Optional<Sandbox> find(String project, String id);

  /// One page, newest first, without tombstones.
  Page<Sandbox> list(String project, SandboxQuery query);

  /// Every sandbox in one of these states, oldest first, of all projects.
  List<Sandbox> inStates(Set<SandboxState> states);

  /// How many there are in each state, tombstones left out.
  Map<SandboxState, Long> counts();

  /// Whether a sandbox that is not deleted was made from this template.
  boolean anyOfTemplate(String digest);

  /// Whether a sandbox that is not deleted was made from this snapshot.
  boolean anyOfSnapshot(String snapshotId);

  /// Forgets tombstones that are older and says how many.
  int purgeDeletedBefore(Instant instant);
}
