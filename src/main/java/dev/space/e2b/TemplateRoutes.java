package dev.space.e2b;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.snapshot.SnapshotService;
import dev.space.core.store.Page;
import dev.space.core.template.Template;
import dev.space.core.template.TemplateRef;
import dev.space.core.template.TemplateService;
import dev.space.http.Exchange;
import dev.space.http.Json;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// Templates and the deletion of snapshots over E2B's control plane.
final class TemplateRoutes {

  private static final int PAGE = 1000;

  private final TemplateService templates;
  private final SnapshotService snapshots;

  TemplateRoutes(TemplateService templates, SnapshotService snapshots) {
    this.templates = templates;
    this.snapshots = snapshots;
  }

  void list(Exchange exchange, Caller caller) {
    List<Map<String, Object>> answer = new ArrayList<>();
    Optional<String> cursor = Optional.empty();
    do {
      Page<Template> page = templates.list(caller, PAGE, cursor);
      page.items().forEach(t -> answer.add(view(t)));
      cursor = page.next();
    } while (cursor.isPresent());
    Json.send(exchange, 200, answer);
  }

  void get(Exchange exchange, Caller caller) {
    Json.send(exchange, 200, view(find(exchange.pathVariable("id"), caller)));
  }

  void alias(Exchange exchange, Caller caller) {
    Template template = find(exchange.pathVariable("alias"), caller);
    Json.send(exchange, 200, Map.of("templateID", template.name(), "public", true));
  }

  /// One call deletes both in E2B: snapshots are templates there.
  void delete(Exchange exchange, Caller caller) {
    String id = exchange.pathVariable("id");
    try {
      snapshots.delete(caller, snapshots.get(caller, id).id());
    } catch (SpaceException e) {
      if (e.code() != ErrorCode.SNAPSHOT_NOT_FOUND) {
        throw e;
      }
      templates.delete(caller, TemplateRef.parse(find(id, caller).digest()));
    }
    exchange.status(204).sendEmpty();
  }

  private Template find(String id, Caller caller) {
    try {
      return templates.get(caller, TemplateRef.parse(id));
    } catch (SpaceException e) {
      if (e.code() == ErrorCode.TEMPLATE_NOT_FOUND || e.code() == ErrorCode.INVALID_REQUEST) {
        throw new E2bError(404, "template '" + id + "' not found");
      }
      throw e;
    }
  }

  private static Map<String, Object> view(Template template) {
    Map<String, Object> view = new LinkedHashMap<>();
    view.put("templateID", template.name());
    view.put("buildID", template.digest());
    view.put("cpuCount", template.defaults().resources().vcpus());
    view.put("memoryMB", template.defaults().resources().memoryMib());
    view.put("diskSizeMB", template.defaults().resources().diskMib());
    view.put("public", true);
    view.put("aliases", List.of(template.name()));
    view.put("names", template.tags().stream().map(tag -> template.name() + ":" + tag).toList());
    view.put("createdAt", template.createdAt().toString());
    view.put("updatedAt", template.createdAt().toString());
    view.put("spawnCount", 0);
    view.put("buildCount", 1);
    view.put("envdVersion", Views.ENVD_VERSION);
    view.put("buildStatus", "ready");
    return view;
  }
}
