package dev.space.store;

import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationKind;
import dev.space.core.operation.OperationState;
import dev.space.core.store.OperationRows;
import dev.space.core.store.Page;
import java.sql.SQLException;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

record SqlOperations(Sql sql) implements OperationRows {

  @Override
  public Operation insert(Operation operation, Map<String, String> intent) {
    sql.change(
        """
        INSERT INTO operations (id, project, kind, sandbox_id, state, terminal, progress, error_json,
          result_ids_json, intent_json, created_at, started_at, ended_at, ordinal, rev)
        VALUES (:id, :project, :kind, :sandbox, :state, :terminal, :progress, :error,
          :results, :intent, :created, :started, :ended, :ordinal, :rev)""",
        values(operation, "ordinal", sql.count("operation"), "intent", Json.write(intent)));
    return operation;
  }

  @Override
  public Operation update(Operation operation) {
    sql.changeOne(
        operation.id(),
        """
        UPDATE operations SET project = :project, kind = :kind, sandbox_id = :sandbox,
          state = :state, terminal = :terminal, progress = :progress, error_json = :error,
          result_ids_json = :results, created_at = :created, started_at = :started,
          ended_at = :ended, rev = rev + 1
        WHERE id = :id AND rev = :rev""",
        values(operation));
    return new Operation(
        operation.id(),
        operation.project(),
        operation.kind(),
        operation.sandboxId(),
        operation.state(),
        operation.progress(),
        operation.error(),
        operation.resultIds(),
        operation.createdAt(),
        operation.startedAt(),
        operation.endedAt(),
        operation.rev() + 1);
  }

  @Override
  public void intend(String id, Map<String, String> intent) {
    sql.change(
        "UPDATE operations SET intent_json = :intent WHERE id = :id",
        "id",
        id,
        "intent",
        Json.write(intent));
  }

  @Override
  public Optional<Operation> find(String id) {
    return sql.one("SELECT * FROM operations WHERE id = :id", SqlOperations::read, "id", id);
  }

  @Override
  public Optional<Operation> find(String project, String id) {
    return sql.one(
        "SELECT * FROM operations WHERE id = :id AND project = :project",
        SqlOperations::read,
        "id",
        id,
        "project",
        project);
  }

  @Override
  public Map<String, String> intent(String id) {
    return sql.one(
            "SELECT intent_json FROM operations WHERE id = :id",
            row -> Json.map(row.text("intent_json")),
            "id",
            id)
        .orElse(Map.of());
  }

  @Override
  public Page<Operation> list(
      String project, Optional<String> sandboxId, int limit, Optional<String> cursor) {
    String ofSandbox = sandboxId.isPresent() ? " AND sandbox_id = :sandbox" : "";
    return Cursor.page(
        sql,
        "SELECT * FROM operations WHERE project = :project" + ofSandbox,
        "id",
        SqlOperations::read,
        o -> new Cursor(o.createdAt(), o.id()),
        limit,
        cursor,
        "project",
        project,
        "sandbox",
        sandboxId);
  }

  @Override
  public List<Operation> open() {
    return sql.all(
        "SELECT * FROM operations WHERE terminal = 0 ORDER BY ordinal", SqlOperations::read);
  }

  @Override
  public List<Operation> open(String sandboxId) {
    return sql.all(
        "SELECT * FROM operations WHERE sandbox_id = :sandbox AND terminal = 0 ORDER BY ordinal",
        SqlOperations::read,
        "sandbox",
        sandboxId);
  }

  @Override
  public Optional<Operation> latest(String sandboxId, OperationKind kind) {
    return sql.one(
        """
        SELECT * FROM operations WHERE sandbox_id = :sandbox AND kind = :kind
        ORDER BY ordinal DESC LIMIT 1""",
        SqlOperations::read,
        "sandbox",
        sandboxId,
        "kind",
        kind);
  }

  @Override
  public int purgeEndedBefore(Instant instant) {
    return sql.change(
        "DELETE FROM operations WHERE terminal = 1 AND ended_at < :before", "before", instant);
  }

  private static @Nullable Object[] values(Operation o, @Nullable Object... more) {
    @Nullable Object[] own = {
      "id", o.id(),
      "project", o.project(),
      "kind", o.kind(),
      "sandbox", o.sandboxId(),
      "state", o.state(),
      "terminal", o.state().isTerminal(),
      "progress", o.progress(),
      "error", o.error().map(Json::write),
      "results", Json.write(o.resultIds()),
      "created", o.createdAt(),
      "started", o.startedAt(),
      "ended", o.endedAt(),
      "rev", o.rev()
    };
    @Nullable Object[] all = new @Nullable Object[own.length + more.length];
    System.arraycopy(own, 0, all, 0, own.length);
    System.arraycopy(more, 0, all, own.length, more.length);
    return all;
  }

  private static Operation read(Row row) throws SQLException {
    return new Operation(
        row.text("id"),
        row.text("project"),
        row.constant("kind", OperationKind.class),
        row.optionalText("sandbox_id"),
        row.constant("state", OperationState.class),
        row.optionalText("progress"),
        row.optionalProblem("error_json"),
        Json.list(row.text("result_ids_json")),
        row.instant("created_at"),
        row.optionalInstant("started_at"),
        row.optionalInstant("ended_at"),
        row.big("rev"));
  }
}
