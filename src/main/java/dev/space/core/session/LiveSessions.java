package dev.space.core.session;

import java.time.InstantSource;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// The sessions that are in use on this node. One is open while somebody holds it or its pump runs;
/// all others cost no memory.
final class LiveSessions implements AutoCloseable {

  private final SessionHost host;
  private final SessionRecords records;
  private final OutputLogs logs;
  private final InstantSource clock;
  private final ConcurrentHashMap<String, Held> held = new ConcurrentHashMap<>();

  private record Held(LiveSession session, int holders) {}

  LiveSessions(SessionHost host, SessionRecords records, OutputLogs logs, InstantSource clock) {
    this.host = host;
    this.records = records;
    this.logs = logs;
    this.clock = clock;
  }

  /// A hold on a session; it stays open until the hold is closed.
  record Hold(LiveSession session, Runnable end) implements AutoCloseable {
    @Override
    public void close() {
      end.run();
    }
  }

  /// Opens a session, or joins those who hold it.
  Hold hold(Session known) {
    String id = known.id();
    Held now =
        held.compute(
            id,
            (_, old) ->
                old == null ? new Held(open(known), 1) : new Held(old.session, old.holders + 1));
    return new Hold(now.session, () -> drop(id));
  }

  /// The record of a session that is open here.
  Optional<Session> find(String sessionId) {
    return Optional.ofNullable(held.get(sessionId)).map(live -> live.session.session());
  }

  /// The sessions of a sandbox that are open here.
  List<Session> of(String sandboxId) {
    return held.values().stream()
        .map(live -> live.session.session())
        .filter(session -> session.sandboxId().equals(sandboxId))
        .toList();
  }

  /// The record as memory has it, when that is newer than the stored one.
  Session current(Session stored) {
    return find(stored.id()).filter(live -> live.rev() >= stored.rev()).orElse(stored);
  }

  int count() {
    return held.size();
  }

  @Override
  public void close() {
    held.values().forEach(live -> live.session.close());
    held.clear();
  }

  private LiveSession open(Session known) {
    // What is known may be older than what was closed a moment ago.
    Session newest = records.find(known.id()).orElse(known);
    return new LiveSession(
        newest,
        logs.open(newest.sandboxId(), newest.id()),
        host,
        records,
        clock,
        () -> held.computeIfPresent(newest.id(), (_, live) -> keptIfUsed(live)));
  }

  private void drop(String sessionId) {
    held.computeIfPresent(
        sessionId, (_, live) -> keptIfUsed(new Held(live.session, live.holders - 1)));
  }

  private static @Nullable Held keptIfUsed(Held live) {
    if (live.holders > 0 || live.session.pumping()) {
      return live;
    }
    live.session.close();
    return null;
  }
}
