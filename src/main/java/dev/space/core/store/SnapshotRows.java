package dev.space.core.store;

import dev.space.core.snapshot.Snapshot;
import java.util.List;
import java.util.Optional;

/// Snapshots. Internal ones belong to forks: they are never listed nor found by callers.
public interface SnapshotRows {

  void insert(Snapshot snapshot, boolean internal);

  /// The snapshot, internal or not.
  Optional<Snapshot> find(String id);

  /// The snapshot if it is this project's and not internal.
  Optional<Snapshot> find(String project, String id);

  Page<Snapshot> list(
      String project, Optional<String> sandboxId, int limit, Optional<String> cursor);

  /// All internal ones.
  List<Snapshot> internal();

  /// Whether a snapshot, internal or not, is of this template.
  boolean anyOfTemplate(String digest);

  /// Whether it was there.
  boolean delete(String id);
}
