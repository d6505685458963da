package dev.space.store;

import dev.space.core.snapshot.Snapshot;
import dev.space.core.store.Page;
import dev.space.core.store.SnapshotRows;
import dev.space.core.template.Resources;
import java.sql.SQLException;
import java.util.List;
import java.util.Optional;

record SqlSnapshots(Sql sql) implements SnapshotRows {

  @Override
  public void insert(Snapshot snapshot, boolean internal) {
    sql.change(
        """
        INSERT INTO snapshots (id, project, sandbox_id, name, template, template_digest, vcpus,
          memory_mib, disk_mib, node, bytes, internal, created_at)
        VALUES (:id, :project, :sandbox, :name, :template, :digest, :vcpus,
          :memory, :disk, :node, :bytes, :internal, :created)""",
        "id",
        snapshot.id(),
        "project",
        snapshot.project(),
        "sandbox",
        snapshot.sandboxId(),
        "name",
        snapshot.name(),
        "template",
        snapshot.template(),
        "digest",
        snapshot.templateDigest(),
        "vcpus",
        snapshot.resources().vcpus(),
        "memory",
        snapshot.resources().memoryMib(),
        "disk",
        snapshot.resources().diskMib(),
        "node",
        snapshot.node(),
        "bytes",
        snapshot.bytes(),
        "internal",
        internal,
        "created",
        snapshot.createdAt());
  }

  @Override
  public Optional<Snapshot> find(String id) {
    return sql.one("SELECT * FROM snapshots WHERE id = :id", SqlSnapshots::read, "id", id);
  }

  @Override
  public Optional<Snapshot> find(String project, String id) {
    return sql.one(
        "SELECT * FROM snapshots WHERE id = :id AND project = :project AND internal = 0",
        SqlSnapshots::read,
        "id",
        id,
        "project",
        project);
  }

  @Override
  public Page<Snapshot> list(
      String project, Optional<String> sandboxId, int limit, Optional<String> cursor) {
    String ofSandbox = sandboxId.isPresent() ? " AND sandbox_id = :sandbox" : "";
    return Cursor.page(
        sql,
        "SELECT * FROM snapshots WHERE project = :project AND internal = 0" + ofSandbox,
        "id",
        SqlSnapshots::read,
        s -> new Cursor(s.createdAt(), s.id()),
        limit,
        cursor,
        "project",
        project,
        "sandbox",
        sandboxId);
  }

  @Override
  public List<Snapshot> internal() {
    return sql.all(
        "SELECT * FROM snapshots WHERE internal = 1 ORDER BY created_at, id", SqlSnapshots::read);
  }

  @Override
  public boolean anyOfTemplate(String digest) {
    return sql.any(
        "SELECT 1 FROM snapshots WHERE template_digest = :digest LIMIT 1", "digest", digest);
  }

  @Override
  public boolean delete(String id) {
    return sql.change("DELETE FROM snapshots WHERE id = :id", "id", id) > 0;
  }

  private static Snapshot read(Row row) throws SQLException {
    return new Snapshot(
        row.text("id"),
        row.text("project"),
        row.text("sandbox_id"),
        row.optionalText("name"),
        row.text("template"),
        row.text("template_digest"),
        new Resources(row.number("vcpus"), row.number("memory_mib"), row.number("disk_mib")),
        row.text("node"),
        row.big("bytes"),
        row.instant("created_at"));
  }
}
