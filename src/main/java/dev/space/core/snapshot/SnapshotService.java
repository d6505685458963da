package dev.space.core.snapshot;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.node.NodeRuntime;
import dev.space.core.operation.Ledger;
import dev.space.core.store.Page;
import java.util.Map;
import java.util.Optional;

/// Reading and deleting snapshots; they are taken by the sandbox service.
public final class SnapshotService {

  private final Ledger ledger;
  private final NodeRuntime node;

  public SnapshotService(Ledger ledger, NodeRuntime node) {
    this.ledger = ledger;
    this.node = node;
  }

  /// @throws SpaceException SNAPSHOT_NOT_FOUND
  public Snapshot get(Caller caller, String id) {
    return ledger
        .store()
        .<Optional<Snapshot>>read(tx -> tx.snapshots().find(caller.project(), id))
        .orElseThrow(SnapshotService::notFound);
  }

  /// Snapshots, newest first.
  ///
  /// @param limit 1 to 1000
  public Page<Snapshot> list(
      Caller caller, Optional<String> sandboxId, int limit, Optional<String> cursor) {
    return ledger
        .store()
        .read(tx -> tx.snapshots().list(caller.project(), sandboxId, limit, cursor));
  }

  /// Deletes a snapshot. The files go first: if the service dies in between, the record is still
  /// there and the call can be repeated.
  ///
  /// @throws SpaceException CONFLICT while a sandbox needs it, SNAPSHOT_NOT_FOUND
  public void delete(Caller caller, String id) {
    Snapshot snapshot = get(caller, id);
    try {
      node.deleteSnapshot(id);
    } catch (SpaceException e) {
      if (!isGone(e)) {
        throw e;
      }
    }
    boolean deleted =
        ledger.<Boolean>write(
            entry -> {
              boolean there = entry.tx().snapshots().delete(id);
              if (there) {
                entry.event(
                    snapshot.project(),
                    "snapshot.deleted",
                    Optional.of(snapshot.sandboxId()),
                    Optional.empty(),
                    Map.of("snapshot", id));
              }
              return there;
            });
    if (!deleted) {
      throw notFound();
    }
  }

  /// Whether a node's refusal means that there was nothing to delete.
  public static boolean isGone(SpaceException e) {
    return e.code() == ErrorCode.SNAPSHOT_NOT_FOUND || e.code() == ErrorCode.NOT_FOUND;
  }

  private static SpaceException notFound() {
    return Problem.of(ErrorCode.SNAPSHOT_NOT_FOUND, "no snapshot has this id")
        .remedy("List the snapshots there are.")
        .toException();
  }
}
