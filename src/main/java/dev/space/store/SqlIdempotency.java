package dev.space.store;

import dev.space.core.operation.IdempotencyKey;
import dev.space.core.store.IdempotencyRows;
import java.time.Instant;
import java.util.Optional;

record SqlIdempotency(Sql sql) implements IdempotencyRows {

  @Override
  public Optional<Used> find(String project, String key) {
    return sql.one(
        "SELECT * FROM idempotency WHERE project = :project AND name = :name",
        row -> new Used(row.text("fingerprint"), row.text("result_id"), row.instant("at")),
        "project",
        project,
        "name",
        key);
  }

  @Override
  public void put(String project, IdempotencyKey key, String resultId, Instant at) {
    sql.change(
        """
        INSERT INTO idempotency (project, name, fingerprint, result_id, at)
        VALUES (:project, :name, :fingerprint, :result, :at)
        ON CONFLICT (project, name) DO UPDATE
        SET fingerprint = excluded.fingerprint, result_id = excluded.result_id, at = excluded.at""",
        "project",
        project,
        "name",
        key.key(),
        "fingerprint",
        key.fingerprint(),
        "result",
        resultId,
        "at",
        at);
  }

  @Override
  public int purgeBefore(Instant instant) {
    return sql.change("DELETE FROM idempotency WHERE at < :before", "before", instant);
  }
}
