package dev.space.core.store;

import dev.space.core.session.Session;
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

  /// Forgets a sandbox's sessions and says how many.
  int deleteAll(String sandboxId);
}
