package dev.space.core.session;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.operation.Idempotency;
import dev.space.core.operation.IdempotencyKey;
import dev.space.core.store.Page;
import dev.space.core.store.Store;
import dev.space.core.store.Tx;
import java.time.Instant;
import java.util.List;
import java.util.Optional;

/// The durable records of sessions.
final class SessionRecords {

  /// Sessions of one sandbox that are not over: created or running.
  static final int OPEN_MAX = 4096;

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
          Optional<String> earlier =
              Idempotency.answered(tx, session.project(), key, session.createdAt());
          if (earlier.isPresent()) {
            return made(tx, earlier.get());
          }
          if (tx.sessions().countOpen(session.sandboxId()) >= OPEN_MAX) {
            throw Problem.of(
                    ErrorCode.TOO_MANY_REQUESTS,
                    "The sandbox has " + OPEN_MAX + " sessions that are not over.")
                .remedy("End some: DELETE /v1/sandboxes/{id}/sessions/{session_id}.")
                .toException();
          }
          Idempotency.remember(tx, session.project(), key, session.id(), session.createdAt());
          return tx.sessions().insert(session);
        });
  }

  private static Session made(Tx tx, String sessionId) {
    return tx.sessions()
        .find(sessionId)
        .orElseThrow(
            () ->
                Problem.of(
                        ErrorCode.SESSION_NOT_FOUND,
                        "The session that was made with this key is gone.")
                    .remedy("Use a new key for a new session.")
                    .toException());
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

  List<Session> endedBeyond(String sandboxId, boolean keep, int newest, int most) {
    return store.read(tx -> tx.sessions().endedBeyond(sandboxId, keep, newest, most));
  }

  List<Session> endedBefore(Instant instant, int most) {
    return store.read(tx -> tx.sessions().endedBefore(instant, most));
  }

  boolean delete(String sessionId) {
    return store.<Boolean>transact(tx -> tx.sessions().delete(sessionId));
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
