package dev.space.store;

import dev.space.core.event.LifecycleEvent;
import dev.space.core.store.EventRows;
import java.sql.SQLException;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;

record SqlEvents(Sql sql) implements EventRows {

  @Override
  public LifecycleEvent append(
      String project,
      Instant at,
      String type,
      Optional<String> sandboxId,
      Optional<String> operationId,
      Map<String, String> data) {
    long seq = sql.count("event");
    sql.change(
        """
        INSERT INTO events (seq, project, at, type, sandbox_id, operation_id, data_json)
        VALUES (:seq, :project, :at, :type, :sandbox, :operation, :data)""",
        "seq",
        seq,
        "project",
        project,
        "at",
        at,
        "type",
        type,
        "sandbox",
        sandboxId,
        "operation",
        operationId,
        "data",
        Json.write(data));
    return new LifecycleEvent(seq, project, at, type, sandboxId, operationId, Map.copyOf(data));
  }

  @Override
  public List<LifecycleEvent> after(String project, long seq, int limit) {
    return sql.all(
        """
        SELECT * FROM events WHERE project = :project AND seq > :seq ORDER BY seq LIMIT :limit""",
        SqlEvents::read,
        "project",
        project,
        "seq",
        seq,
        "limit",
        limit);
  }

  @Override
  public long last() {
    return sql.one("SELECT value FROM counters WHERE name = 'event'", row -> row.big("value"))
        .orElse(0L);
  }

  @Override
  public void trim(long keep) {
    sql.change("DELETE FROM events WHERE seq <= :seq", "seq", last() - keep);
  }

  private static LifecycleEvent read(Row row) throws SQLException {
    return new LifecycleEvent(
        row.big("seq"),
        row.text("project"),
        row.instant("at"),
        row.text("type"),
        row.optionalText("sandbox_id"),
        row.optionalText("operation_id"),
        Json.map(row.text("data_json")));
  }
}
