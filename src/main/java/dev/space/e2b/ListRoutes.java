package dev.space.e2b;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.sandbox.Sandbox;
import dev.space.core.sandbox.SandboxQuery;
import dev.space.core.sandbox.SandboxService;
import dev.space.core.sandbox.SandboxState;
import dev.space.core.snapshot.Snapshot;
import dev.space.core.snapshot.SnapshotService;
import dev.space.core.store.Page;
import dev.space.http.Exchange;
import dev.space.http.Json;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// Lists over E2B's control plane.
final class ListRoutes {

  private static final int LIMIT_MAX = 100;
  private static final int PAGE = 1000;
  private static final Set<SandboxState> RUNNING =
      EnumSet.of(
          SandboxState.CREATING,
          SandboxState.RUNNING,
          SandboxState.PAUSING,
          SandboxState.RESUMING,
          SandboxState.WAKING);
  private static final Set<SandboxState> PAUSED =
      EnumSet.of(SandboxState.PAUSED, SandboxState.SUSPENDING, SandboxState.SUSPENDED);

  private final SandboxService sandboxes;
  private final SnapshotService snapshots;
  private final Views views;

  ListRoutes(SandboxService sandboxes, SnapshotService snapshots, Views views) {
    this.sandboxes = sandboxes;
    this.snapshots = snapshots;
    this.views = views;
  }

  /// The list of old SDKs: what runs, all at once.
  void sandboxesV1(Exchange exchange, Caller caller) {
    List<Map<String, Object>> answer = new ArrayList<>();
    for (Sandbox sandbox : all(caller, RUNNING, filter(exchange), Optional.empty())) {
      answer.add(views.listed(sandbox));
    }
    Json.send(exchange, 200, answer);
  }

  /// Pages by position after the sandbox named in the token, so that creates and deletes between
  /// two pages neither repeat nor skip any.
  void sandboxesV2(Exchange exchange, Caller caller) {
    int limit = (int) exchange.query().integer("limit", LIMIT_MAX, 1, LIMIT_MAX);
    boolean ascending =
        switch (exchange.query().one("order").orElse("desc")) {
          case "asc" -> true;
          case "desc" -> false;
          default -> throw new E2bError(400, "order must be asc or desc");
        };
    Comparator<Sandbox> byStart =
        Comparator.comparing(Sandbox::createdAt).thenComparing(Sandbox::id);
    Comparator<Sandbox> order = ascending ? byStart : byStart.reversed();
    Optional<Instant> startedAfter = exchange.query().one("startedAfter").map(ListRoutes::instant);
    List<Sandbox> matching =
        new ArrayList<>(
            all(
                caller,
                states(exchange),
                filter(exchange),
                exchange.query().one("template").filter(t -> !t.isEmpty())));
    matching.removeIf(s -> startedAfter.filter(s.createdAt()::isBefore).isPresent());
    matching.sort(order);
    long running = matching.stream().filter(s -> RUNNING.contains(s.state())).count();
    Optional<PageToken> token =
        exchange.query().one("nextToken").filter(t -> !t.isEmpty()).map(PageToken::parse);
    List<Sandbox> rest =
        matching.stream().filter(s -> token.map(t -> t.before(s, ascending)).orElse(true)).toList();
    List<Sandbox> page = rest.subList(0, Math.min(limit, rest.size()));
    if (rest.size() > page.size()) {
      exchange.header("X-Next-Token", PageToken.of(page.getLast()).text());
    }
    exchange.header("X-Total-Running", Long.toString(running));
    Json.send(exchange, 200, page.stream().map(views::listed).toList());
  }

  /// Where the next page begins: behind this sandbox.
  private record PageToken(Instant createdAt, String id) {

    static PageToken of(Sandbox sandbox) {
      return new PageToken(sandbox.createdAt(), sandbox.id());
    }

    static PageToken parse(String text) {
      int comma = text.indexOf(',');
      if (comma > 0) {
        return new PageToken(instant(text.substring(0, comma)), text.substring(comma + 1));
      }
      throw new E2bError(400, "nextToken is not one of this server's");
    }

    String text() {
      return createdAt + "," + id;
    }

    boolean before(Sandbox sandbox, boolean ascending) {
      int time = createdAt.compareTo(sandbox.createdAt());
      int all = time != 0 ? time : id.compareTo(sandbox.id());
      return ascending ? all < 0 : all > 0;
    }
  }

  private static Instant instant(String text) {
    try {
      return Instant.parse(text);
    } catch (DateTimeParseException e) {
      throw new E2bError(400, "'" + text + "' is not a time");
    }
  }

  private static Set<SandboxState> states(Exchange exchange) {
    Set<SandboxState> wanted = EnumSet.noneOf(SandboxState.class);
    for (String list : exchange.query().all("state")) {
      for (String state : list.split(",")) {
        switch (state) {
          case "running" -> wanted.addAll(RUNNING);
          case "paused" -> wanted.addAll(PAUSED);
          default -> throw new E2bError(400, "state must be running or paused");
        }
      }
    }
    if (wanted.isEmpty()) {
      wanted.addAll(RUNNING);
      wanted.addAll(PAUSED);
    }
    return wanted;
  }

  private static Map<String, String> filter(Exchange exchange) {
    return exchange.query().one("metadata").map(MetadataFilter::parse).orElse(Map.of());
  }

  private List<Sandbox> all(
      Caller caller,
      Set<SandboxState> states,
      Map<String, String> metadata,
      Optional<String> template) {
    List<Sandbox> found = new ArrayList<>();
    Optional<String> cursor = Optional.empty();
    do {
      Page<Sandbox> page;
      try {
        page = sandboxes.list(caller, new SandboxQuery(states, template, metadata, PAGE, cursor));
      } catch (SpaceException e) {
        if (e.code() == ErrorCode.TEMPLATE_NOT_FOUND) {
          return List.of();
        }
        throw e;
      }
      found.addAll(page.items());
      cursor = page.next();
    } while (cursor.isPresent());
    return found;
  }

  void snapshots(Exchange exchange, Caller caller) {
    int limit = (int) exchange.query().integer("limit", LIMIT_MAX, 1, LIMIT_MAX);
    Optional<String> name = exchange.query().one("name");
    Page<Snapshot> page =
        snapshots.list(
            caller,
            exchange.query().one("sandboxID").filter(s -> !s.isEmpty()),
            limit,
            exchange.query().one("nextToken").filter(t -> !t.isEmpty()));
    page.next().ifPresent(next -> exchange.header("X-Next-Token", next));
    List<Map<String, Object>> answer = new ArrayList<>();
    for (Snapshot snapshot : page.items()) {
      if (name.isEmpty() || name.equals(snapshot.name())) {
        answer.add(Map.of("snapshotID", snapshot.id(), "names", snapshot.name().stream().toList()));
      }
    }
    Json.send(exchange, 200, answer);
  }
}
