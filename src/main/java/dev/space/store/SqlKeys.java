package dev.space.store;

import dev.space.core.access.StoredKey;
import dev.space.core.store.KeyRows;
import java.sql.SQLException;
import java.time.Instant;
import java.util.List;
import java.util.Optional;

record SqlKeys(Sql sql) implements KeyRows {

  @Override
  public void insert(StoredKey key) {
    sql.change(
        """
        INSERT INTO api_keys (id, project, name, role, hash, created_at, revoked_at)
        VALUES (:id, :project, :name, :role, :hash, :created, :revoked)""",
        "id",
        key.id(),
        "project",
        key.project(),
        "name",
        key.name(),
        "role",
        key.role(),
        "hash",
        key.hash(),
        "created",
        key.createdAt(),
        "revoked",
        key.revokedAt());
  }

  @Override
  public Optional<StoredKey> byHash(String hash) {
    return sql.one("SELECT * FROM api_keys WHERE hash = :hash", SqlKeys::read, "hash", hash);
  }

  @Override
  public List<StoredKey> list(String project) {
    return sql.all(
        "SELECT * FROM api_keys WHERE project = :project ORDER BY created_at, id",
        SqlKeys::read,
        "project",
        project);
  }

  @Override
  public boolean any() {
    return sql.any("SELECT 1 FROM api_keys LIMIT 1");
  }

  @Override
  public boolean revoke(String project, String id, Instant at) {
    return sql.change(
            """
            UPDATE api_keys SET revoked_at = :at
            WHERE project = :project AND id = :id AND revoked_at IS NULL""",
            "at",
            at,
            "project",
            project,
            "id",
            id)
        > 0;
  }

  private static StoredKey read(Row row) throws SQLException {
    return new StoredKey(
        row.text("id"),
        row.text("project"),
        row.text("name"),
        row.text("role"),
        row.text("hash"),
        row.instant("created_at"),
        row.optionalInstant("revoked_at"));
  }
}
