package dev.space.store;

import dev.space.core.sandbox.OnTimeout;
import dev.space.core.sandbox.Sandbox;
import dev.space.core.sandbox.SandboxQuery;
import dev.space.core.sandbox.SandboxState;
import dev.space.core.store.Page;
import dev.space.core.store.SandboxRows;
import dev.space.core.template.Resources;
import java.sql.SQLException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

record SqlSandboxes(Sql sql) implements SandboxRows {

  @Override
  public Sandbox insert(Sandbox sandbox) {
    sql.change(
        """
        INSERT INTO sandboxes (id, project, template, template_digest, snapshot_id, state, cause_json,
          vcpus, memory_mib, disk_mib, env_json, metadata_json, timeout, expires_at, on_timeout,
          idle_timeout, auto_wake, public_ports_json, disk_only, node, created_at, state_changed_at, rev)
        VALUES (:id, :project, :template, :digest, :snapshot, :state, :cause,
          :vcpus, :memory, :disk, :env, :metadata, :timeout, :expires, :onTimeout,
          :idleTimeout, :autoWake, :ports, :diskOnly, :node, :created, :changed, :rev)""",
        values(sandbox));
    addMetadata(sandbox);
    return sandbox;
  }

  @Override
  public Sandbox update(Sandbox sandbox) {
    Map<String, String> before =
        sql.one(
                "SELECT metadata_json FROM sandboxes WHERE id = :id",
                row -> Json.map(row.text("metadata_json")),
                "id",
                sandbox.id())
            .orElse(Map.of());
    sql.changeOne(
        sandbox.id(),
        """
        UPDATE sandboxes SET project = :project, template = :template, template_digest = :digest,
          snapshot_id = :snapshot, state = :state, cause_json = :cause, vcpus = :vcpus,
          memory_mib = :memory, disk_mib = :disk, env_json = :env, metadata_json = :metadata,
          timeout = :timeout, expires_at = :expires, on_timeout = :onTimeout,
          idle_timeout = :idleTimeout, auto_wake = :autoWake, public_ports_json = :ports,
          disk_only = :diskOnly, node = :node, created_at = :created,
          state_changed_at = :changed, rev = rev + 1
        WHERE id = :id AND rev = :rev""",
        values(sandbox));
    if (!before.equals(sandbox.metadata())) {
      sql.change("DELETE FROM sandbox_metadata WHERE sandbox_id = :id", "id", sandbox.id());
      addMetadata(sandbox);
    }
    return withRev(sandbox, sandbox.rev() + 1);
  }

  private void addMetadata(Sandbox sandbox) {
    sandbox
        .metadata()
        .forEach(
            (name, value) ->
                sql.change(
                    "INSERT INTO sandbox_metadata (sandbox_id, name, value) VALUES (:id, :name, :value)",
                    "id",
                    sandbox.id(),
                    "name",
                    name,
                    "value",
                    value));
  }

  @Override
  public Optional<Sandbox> find(String id) {
    return sql.one("SELECT * FROM sandboxes WHERE id = :id", SqlSandboxes::read, "id", id);
  }

  @Override
  public Optional<Sandbox> find(String project, String id) {
    return sql.one(
        "SELECT * FROM sandboxes WHERE id = :id AND project = :project",
        SqlSandboxes::read,
        "id",
        id,
        "project",
        project);
  }

  @Override
  public Page<Sandbox> list(String project, SandboxQuery query) {
    StringBuilder select =
        new StringBuilder(
            "SELECT * FROM sandboxes WHERE project = :project AND state <> 'DELETED'");
    List<Object> values = new ArrayList<>(List.of("project", project));
    if (!query.states().isEmpty()) {
      select.append(" AND state IN (").append(names(query.states())).append(")");
    }
    query
        .template()
        .ifPresent(
            template -> {
              select.append(" AND (template = :template OR template_digest = :template)");
              values.addAll(List.of("template", template));
            });
    int pair = 0;
    for (Map.Entry<String, String> entry : query.metadata().entrySet()) {
      select.append(
          " AND EXISTS (SELECT 1 FROM sandbox_metadata m WHERE m.sandbox_id = sandboxes.id AND m.name = :name%d AND m.value = :value%d)"
              .formatted(pair, pair));
      values.addAll(List.of("name" + pair, entry.getKey(), "value" + pair, entry.getValue()));
      pair++;
    }
    return Cursor.page(
        sql,
        select.toString(),
        "id",
        SqlSandboxes::read,
        s -> new Cursor(s.createdAt(), s.id()),
        query.limit(),
        query.cursor(),
        values.toArray());
  }

  @Override
  public List<Sandbox> inStates(Set<SandboxState> states) {
    if (states.isEmpty()) {
      return List.of();
    }
    return sql.all(
        "SELECT * FROM sandboxes WHERE state IN (" + names(states) + ") ORDER BY created_at, id",
        SqlSandboxes::read);
  }

  @Override
  public Map<SandboxState, Long> counts() {
    Map<SandboxState, Long> counts = new EnumMap<>(SandboxState.class);
    sql.all(
            "SELECT state, COUNT(*) AS n FROM sandboxes WHERE state <> 'DELETED' GROUP BY state",
            row -> Map.entry(row.constant("state", SandboxState.class), row.big("n")))
        .forEach(entry -> counts.put(entry.getKey(), entry.getValue()));
    return Map.copyOf(counts);
  }

  @Override
  public boolean anyOfTemplate(String digest) {
    return sql.any(
        "SELECT 1 FROM sandboxes WHERE template_digest = :digest AND state <> 'DELETED' LIMIT 1",
        "digest",
        digest);
  }

  @Override
  public boolean anyOfSnapshot(String snapshotId) {
    return sql.any(
        "SELECT 1 FROM sandboxes WHERE snapshot_id = :id AND state <> 'DELETED' LIMIT 1",
        "id",
        snapshotId);
  }

  @Override
  public int purgeDeletedBefore(Instant instant) {
    sql.change(
        """
        DELETE FROM sandbox_metadata WHERE sandbox_id IN
          (SELECT id FROM sandboxes WHERE state = 'DELETED' AND state_changed_at < :before)""",
        "before",
        instant);
    return sql.change(
        "DELETE FROM sandboxes WHERE state = 'DELETED' AND state_changed_at < :before",
        "before",
        instant);
  }

  private static String names(Collection<SandboxState> states) {
    return states.stream().map(s -> "'" + s.name() + "'").collect(Collectors.joining(", "));
  }

  private static @Nullable Object[] values(Sandbox s) {
    return new @Nullable Object[] {
      "id", s.id(),
      "project", s.project(),
      "template", s.template(),
      "digest", s.templateDigest(),
      "snapshot", s.snapshotId(),
      "state", s.state(),
      "cause", s.cause().map(Json::write),
      "vcpus", s.resources().vcpus(),
      "memory", s.resources().memoryMib(),
      "disk", s.resources().diskMib(),
      "env", Json.write(s.env()),
      "metadata", Json.write(s.metadata()),
      "timeout", s.timeout(),
      "expires", s.expiresAt(),
      "onTimeout", s.onTimeout(),
      "idleTimeout", s.idleTimeout(),
      "autoWake", s.autoWake(),
      "ports", Json.write(new TreeSet<>(s.publicPorts())),
      "diskOnly", s.diskOnly(),
      "node", s.node(),
      "created", s.createdAt(),
      "changed", s.stateChangedAt(),
      "rev", s.rev()
    };
  }

  private static Sandbox read(Row row) throws SQLException {
    return new Sandbox(
        row.text("id"),
        row.text("project"),
        row.text("template"),
        row.text("template_digest"),
        row.optionalText("snapshot_id"),
        row.constant("state", SandboxState.class),
        row.optionalProblem("cause_json"),
        new Resources(row.number("vcpus"), row.number("memory_mib"), row.number("disk_mib")),
        Json.map(row.text("env_json")),
        Json.map(row.text("metadata_json")),
        row.optionalDuration("timeout"),
        row.optionalInstant("expires_at"),
        row.constant("on_timeout", OnTimeout.class),
        row.optionalDuration("idle_timeout"),
        row.flag("auto_wake"),
        Set.of(Json.read(row.text("public_ports_json"), Integer[].class)),
        row.flag("disk_only"),
        row.text("node"),
        row.instant("created_at"),
        row.instant("state_changed_at"),
        row.big("rev"));
  }

  private static Sandbox withRev(Sandbox s, long rev) {
    return new Sandbox(
        s.id(),
        s.project(),
        s.template(),
        s.templateDigest(),
        s.snapshotId(),
        s.state(),
        s.cause(),
        s.resources(),
        s.env(),
        s.metadata(),
        s.timeout(),
        s.expiresAt(),
        s.onTimeout(),
        s.idleTimeout(),
        s.autoWake(),
        s.publicPorts(),
        s.diskOnly(),
        s.node(),
        s.createdAt(),
        s.stateChangedAt(),
        rev);
  }
}
