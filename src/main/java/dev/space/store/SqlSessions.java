package dev.space.store;

import dev.space.core.guest.ProcessExit;
import dev.space.core.guest.ProcessSpec;
import dev.space.core.session.Session;
import dev.space.core.session.SessionState;
import dev.space.core.store.Page;
import dev.space.core.store.SessionRows;
import java.sql.SQLException;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

record SqlSessions(Sql sql) implements SessionRows {

  @Override
  public Session insert(Session session) {
    sql.change(
        """
        INSERT INTO sessions (id, project, sandbox_id, spec_json, shell, state, terminal, pid, exit_json,
          error_json, keep, token_epoch, created_at, started_at, ended_at, rev)
        VALUES (:id, :project, :sandbox, :spec, :shell, :state, :terminal, :pid, :exit,
          :error, :keep, :epoch, :created, :started, :ended, :rev)""",
        values(session));
    return session;
  }

  @Override
  public Session update(Session session) {
    sql.changeOne(
        session.id(),
        """
        UPDATE sessions SET project = :project, sandbox_id = :sandbox, spec_json = :spec, shell = :shell,
          state = :state, terminal = :terminal, pid = :pid, exit_json = :exit, error_json = :error,
          keep = :keep, token_epoch = :epoch, created_at = :created, started_at = :started,
          ended_at = :ended, rev = rev + 1
        WHERE id = :id AND rev = :rev""",
        values(session));
    return new Session(
        session.id(),
        session.project(),
        session.sandboxId(),
        session.spec(),
        session.shell(),
        session.state(),
        session.pid(),
        session.exit(),
        session.error(),
        session.keep(),
        session.tokenEpoch(),
        session.createdAt(),
        session.startedAt(),
        session.endedAt(),
        session.rev() + 1);
  }

  @Override
  public Optional<Session> find(String id) {
    return sql.one("SELECT * FROM sessions WHERE id = :id", SqlSessions::read, "id", id);
  }

  @Override
  public Optional<Session> find(String project, String sandboxId, String id) {
    return sql.one(
        "SELECT * FROM sessions WHERE id = :id AND project = :project AND sandbox_id = :sandbox",
        SqlSessions::read,
        "id",
        id,
        "project",
        project,
        "sandbox",
        sandboxId);
  }

  @Override
  public Page<Session> list(String project, String sandboxId, int limit, Optional<String> cursor) {
    return Cursor.page(
        sql,
        "SELECT * FROM sessions WHERE project = :project AND sandbox_id = :sandbox",
        "id",
        SqlSessions::read,
        s -> new Cursor(s.createdAt(), s.id()),
        limit,
        cursor,
        "project",
        project,
        "sandbox",
        sandboxId);
  }

  @Override
  public List<Session> open(String sandboxId) {
    return sql.all(
        """
        SELECT * FROM sessions WHERE sandbox_id = :sandbox AND terminal = 0
        ORDER BY created_at, id""",
        SqlSessions::read,
        "sandbox",
        sandboxId);
  }

  @Override
  public List<Session> open() {
    return sql.all(
        "SELECT * FROM sessions WHERE terminal = 0 ORDER BY created_at, id", SqlSessions::read);
  }

  @Override
  public int countOpen(String sandboxId) {
    return sql.one(
            "SELECT COUNT(*) AS n FROM sessions WHERE sandbox_id = :sandbox AND terminal = 0",
            row -> row.number("n"),
            "sandbox",
            sandboxId)
        .orElse(0);
  }

  @Override
  public List<Session> endedBeyond(String sandboxId, boolean keep, int newest, int most) {
    return sql.all(
        """
        SELECT * FROM sessions WHERE sandbox_id = :sandbox AND terminal = 1 AND keep = :keep
        ORDER BY created_at DESC, id DESC LIMIT :most OFFSET :newest""",
        SqlSessions::read,
        "sandbox",
        sandboxId,
        "keep",
        keep,
        "most",
        most,
        "newest",
        newest);
  }

  @Override
  public List<Session> endedBefore(Instant instant, int most) {
    return sql.all(
        """
        SELECT * FROM sessions WHERE terminal = 1 AND keep = 0 AND ended_at < :before
        ORDER BY ended_at LIMIT :most""",
        SqlSessions::read,
        "before",
        instant,
        "most",
        most);
  }

  @Override
  public boolean delete(String id) {
    return sql.change("DELETE FROM sessions WHERE id = :id", "id", id) > 0;
  }

  @Override
  public int deleteAll(String sandboxId) {
    return sql.change("DELETE FROM sessions WHERE sandbox_id = :sandbox", "sandbox", sandboxId);
  }

  private static @Nullable Object[] values(Session s) {
    return new @Nullable Object[] {
      "id", s.id(),
      "project", s.project(),
      "sandbox", s.sandboxId(),
      "spec", Json.write(s.spec()),
      "shell", s.shell(),
      "state", s.state(),
      "terminal", s.state().isTerminal(),
      "pid", s.pid(),
      "exit", s.exit().map(Json::write),
      "error", s.error().map(Json::write),
      "keep", s.keep(),
      "epoch", s.tokenEpoch(),
      "created", s.createdAt(),
      "started", s.startedAt(),
      "ended", s.endedAt(),
      "rev", s.rev()
    };
  }

  private static Session read(Row row) throws SQLException {
    return new Session(
        row.text("id"),
        row.text("project"),
        row.text("sandbox_id"),
        Json.read(row.text("spec_json"), ProcessSpec.class),
        row.flag("shell"),
        row.constant("state", SessionState.class),
        row.optionalNumber("pid"),
        row.optionalText("exit_json").map(json -> Json.read(json, ProcessExit.class)),
        row.optionalProblem("error_json"),
        row.flag("keep"),
        row.number("token_epoch"),
        row.instant("created_at"),
        row.optionalInstant("started_at"),
        row.optionalInstant("ended_at"),
        row.big("rev"));
  }
}
