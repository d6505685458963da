package dev.space.core.store;

import dev.space.core.session.Session;
import java.time.Instant;
import java.util.List;
import java.util.Optional;

/// Sessions.
public interface SessionRows {

  Session insert(Session session);

  Session update(Session session);

  Optional<Session> find(String id);

  /// The session if it is this project's and this sandbox's.
  Optional<Session> find(String project, String sandboxId, String id);

  Page<Session> list(String project, String sandboxId, int limit, Optional<String> cursor);

  /// What is not terminal in a sandbox, oldest first.
  List<Session> open(String sandboxId);

  /// What is not terminal in any sandbox, oldest first.
  List<Session> open();

  /// How many are not terminal in a sandbox.
  int countOpen(String sandboxId);

  /// The terminal ones of a sandbox that are older than its newest.
  ///
  /// @param keep those with this mark
  /// @param newest how many are passed over
  List<Session> endedBeyond(String sandboxId, boolean keep, int newest, int most);

  /// Terminal ones without `keep` that ended before, the longest ended first.
  List<Session> endedBefore(Instant instant, int most);

  /// Forgets one and says whether it was there.
  boolean delete(String id);

  /// Forgets a sandbox's sessions and says how many.
  int deleteAll(String sandboxId);
}
