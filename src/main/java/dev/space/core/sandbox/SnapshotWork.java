package dev.space.core.sandbox;

import dev.space.core.error.Problem;
import dev.space.core.operation.Entry;
import dev.space.core.operation.Lanes;
import dev.space.core.operation.Ledger;
import dev.space.core.operation.Operation;
import dev.space.core.snapshot.Snapshot;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiConsumer;

/// Takes snapshots of sandboxes: those that a caller asked for and those that forks start from.
final class SnapshotWork {

  /// Intent: the id the snapshot has from the start.
  static final String SNAPSHOT = "snapshot";

  /// Intent: the caller's name for it.
  static final String NAME = "name";

  private final Ledger ledger;
  private final NodeWork nodes;

  SnapshotWork(Ledger ledger, NodeWork nodes) {
    this.ledger = ledger;
    this.nodes = nodes;
  }

  static String id(Map<String, String> intent) {
    return intent.getOrDefault(SNAPSHOT, "");
  }

  /// Takes the snapshot of an operation and records it, unless that fails or the operation was
  /// ended meanwhile: then nothing of it stays.
  ///
  /// @param internal whether callers never see it
  /// @param then what else belongs into the transaction that records it
  /// @return whether it was recorded
  boolean take(
      Lanes.Job job,
      Operation o,
      Sandbox source,
      Map<String, String> intent,
      boolean internal,
      BiConsumer<Entry, Operation> then) {
    AtomicLong bytes = new AtomicLong();
    Optional<Problem> failure =
        nodes.attempt(job, () -> bytes.set(nodes.node().snapshot(source.id(), id(intent))));
    boolean recorded =
        ledger.<Boolean>persist(
            entry -> {
              Operation current = entry.tx().operations().find(o.id()).orElseThrow();
              if (current.state().isTerminal()) {
                return false;
              }
              if (failure.isPresent()) {
                entry.fail(current, failure.get(), List.of());
                return false;
              }
              record(entry, source, intent, bytes.get(), internal);
              then.accept(entry, current);
              return true;
            });
    if (!recorded) {
      nodes.sweepSnapshot(id(intent));
    }
    return recorded;
  }

  /// Records the snapshot that an operation makes. It is internal, and swept when nothing needs it,
  /// until it is whole and a caller's.
  static void record(
      Entry entry, Sandbox source, Map<String, String> intent, long bytes, boolean internal) {
    entry.tx().snapshots().delete(id(intent));
    entry
        .tx()
        .snapshots()
        .insert(
            new Snapshot(
                id(intent),
                source.project(),
                source.id(),
                Optional.ofNullable(intent.get(NAME)),
                source.template(),
                source.templateDigest(),
                source.resources(),
                source.node(),
                bytes,
                entry.now()),
            internal);
  }
}
