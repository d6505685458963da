package dev.space.core.session;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.operation.IdempotencyKey;
import dev.space.core.store.Page;
import dev.space.core.store.Store;
import dev.space.core.store.Tx;
import java.util.List;
import java.util.Optional;

/// The durable records of sessions.
final class SessionRecords {

  private final Store store;

  SessionRecords(Store store) {
    this.store = store;
  }

  /// Adds a session, or answers with the one that was made with the same key before.
  ///
  /// @throws dev.space.core.error.SpaceException IDEMPOTENCY_MISMATCH when the key was used for
  ///   something else
  Session insert(Session session, Optional<IdempotencyKey> key) {
    return store.transact(
        tx -> {
          var earlier = key.flatMap(k -> earlier(tx, session.project(), k));
          if (earlier.isPresent()) {
            return earlier.get();
          }
          key.ifPresent(
              k -> tx.idempotency().put(session.project(), k, session.id(), session.createdAt()));
          return tx.sessions().insert(session);
        });
  }

  private static Optional<Session> earlier(Tx tx, String project, IdempotencyKey key) {
    var used = tx.idempotency().find(project, key.key());
    if (used.isEmpty()) {
      return Optional.empty();
    }
    if (!used.get().fingerprint().equals(key.fingerprint())) {
      throw Problem.of(
              ErrorCode.IDEMPOTENCY_MISMATCH,
              "The idempotency key was used for another request before.")
          .remedy("Use a new key for a new request; repeat a request unchanged.")
          .toException();
    }
    return tx.sessions().find(used.get().resultId());
  }

  Optional<Session> find(String sessionId) {
    return store.read(tx -> tx.sessions().find(sessionId));
  }

  Optional<Session> find(String project, String sandboxId, String sessionId) {
    return store.read(tx -> tx.sessions().find(project, sandboxId, sessionId));
  }

  /// Writes the record as memory has it: while a session is open, memory alone changes it.
  ///
  /// @return false when there is no such record any more
  boolean update(Session changed) {
    return store.transact(
        tx -> {
          var stored = tx.sessions().find(changed.id());
          stored.ifPresent(old -> tx.sessions().update(SessionChange.of(changed).build(old.rev())));
          return stored.isPresent();
        });
  }

  Page<Session> list(String project, String sandboxId, int limit, Optional<String> cursor) {
    return store.read(tx -> tx.sessions().list(project, sandboxId, limit, cursor));
  }

  /// Sessions whose process runs, of one sandbox.
  List<Session> running(String sandboxId) {
    return runningOf(store.read(tx -> tx.sessions().open(sandboxId)));
  }

  /// Sessions whose process runs, of all sandboxes.
  List<Session> running() {
    return runningOf(store.read(tx -> tx.sessions().open()));
  }

  private static List<Session> runningOf(List<Session> open) {
    return open.stream().filter(session -> session.state() == SessionState.RUNNING).toList();
  }

  /// Removes the records of a sandbox's sessions.
  void forget(String sandboxId) {
    store.transact(tx -> tx.sessions().deleteAll(sandboxId));
  }
}
