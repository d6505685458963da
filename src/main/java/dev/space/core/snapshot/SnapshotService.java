package dev.space.core.snapshot;

import dev.space.core.access.Caller;
import dev.space.core.store.Page;
import java.util.Optional;

/// Reading and deleting snapshots; they are taken by the sandbox service.
public final class SnapshotService {

  public Snapshot get(Caller caller, String id) {
    throw new UnsupportedOperationException();
  }

  public Page<Snapshot> list(
      Caller caller, Optional<String> sandboxId, int limit, Optional<String> cursor) {
    throw new UnsupportedOperationException();
  }

  /// @throws dev.space.core.error.SpaceException CONFLICT while a sandbox runs from it
  public void delete(Caller caller, String id) {
    throw new UnsupportedOperationException();
  }
}
