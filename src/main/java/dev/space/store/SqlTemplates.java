package dev.space.store;

import dev.space.core.store.Page;
import dev.space.core.store.TemplateRows;
import dev.space.core.template.Template;
import dev.space.core.template.TemplateRef;
import java.sql.SQLException;
import java.util.List;
import java.util.Optional;

record SqlTemplates(Sql sql) implements TemplateRows {

  @Override
  public void insert(String project, Template template) {
    sql.change(
        """
        INSERT INTO templates (project, digest, name, defaults_json, root_bytes, created_at)
        VALUES (:project, :digest, :name, :defaults, :bytes, :created)
        ON CONFLICT (project, digest) DO NOTHING""",
        "project",
        project,
        "digest",
        template.digest(),
        "name",
        template.name(),
        "defaults",
        Json.write(template.defaults()),
        "bytes",
        template.rootBytes(),
        "created",
        template.createdAt());
  }

  @Override
  public Optional<Template> find(String project, TemplateRef ref) {
    return switch (ref) {
      case TemplateRef.Digest(String digest) -> byDigest(project, digest);
      case TemplateRef.Tagged(String name, String tag) ->
          sql.one(
                  """
                  SELECT digest FROM template_tags
                  WHERE project = :project AND name = :name AND tag = :tag""",
                  row -> row.text("digest"),
                  "project",
                  project,
                  "name",
                  name,
                  "tag",
                  tag)
              .flatMap(digest -> byDigest(project, digest));
    };
  }

  private Optional<Template> byDigest(String project, String digest) {
    return sql.one(
            "SELECT * FROM templates WHERE project = :project AND digest = :digest",
            SqlTemplates::read,
            "project",
            project,
            "digest",
            digest)
        .map(template -> withTags(project, template));
  }

  private Template withTags(String project, Template template) {
    List<String> tags =
        sql.all(
            """
            SELECT name, tag FROM template_tags WHERE project = :project AND digest = :digest
            ORDER BY name, tag""",
            row -> row.text("name") + ":" + row.text("tag"),
            "project",
            project,
            "digest",
            template.digest());
    return new Template(
        template.digest(),
        template.name(),
        List.copyOf(tags),
        template.defaults(),
        template.rootBytes(),
        template.createdAt());
  }

  @Override
  public Page<Template> list(String project, int limit, Optional<String> cursor) {
    Page<Template> page =
        Cursor.page(
            sql,
            "SELECT * FROM templates WHERE project = :project",
            "digest",
            SqlTemplates::read,
            t -> new Cursor(t.createdAt(), t.digest()),
            limit,
            cursor,
            "project",
            project);
    return new Page<>(page.items().stream().map(t -> withTags(project, t)).toList(), page.next());
  }

  @Override
  public void tag(String project, TemplateRef.Tagged tag, String digest) {
    sql.change(
        """
        INSERT INTO template_tags (project, name, tag, digest) VALUES (:project, :name, :tag, :digest)
        ON CONFLICT (project, name, tag) DO UPDATE SET digest = excluded.digest""",
        "project",
        project,
        "name",
        tag.name(),
        "tag",
        tag.tag(),
        "digest",
        digest);
  }

  @Override
  public boolean untag(String project, TemplateRef.Tagged tag) {
    return sql.change(
            "DELETE FROM template_tags WHERE project = :project AND name = :name AND tag = :tag",
            "project",
            project,
            "name",
            tag.name(),
            "tag",
            tag.tag())
        > 0;
  }

  @Override
  public List<Template> tagged(String project, String name) {
    return sql
        .all(
            """
            SELECT * FROM templates WHERE project = :project AND digest IN
              (SELECT digest FROM template_tags WHERE project = :project AND name = :name)
            ORDER BY created_at DESC, digest DESC""",
            SqlTemplates::read,
            "project",
            project,
            "name",
            name)
        .stream()
        .map(t -> withTags(project, t))
        .toList();
  }

  @Override
  public boolean delete(String project, String digest) {
    sql.change(
        "DELETE FROM template_tags WHERE project = :project AND digest = :digest",
        "project",
        project,
        "digest",
        digest);
    return sql.change(
            "DELETE FROM templates WHERE project = :project AND digest = :digest",
            "project",
            project,
            "digest",
            digest)
        > 0;
  }

  @Override
  public boolean anyOf(String digest) {
    return sql.any("SELECT 1 FROM templates WHERE digest = :digest LIMIT 1", "digest", digest);
  }

  private static Template read(Row row) throws SQLException {
    return new Template(
        row.text("digest"),
        row.text("name"),
        List.of(),
        Json.read(row.text("defaults_json"), Template.Defaults.class),
        row.big("root_bytes"),
        row.instant("created_at"));
  }
}
