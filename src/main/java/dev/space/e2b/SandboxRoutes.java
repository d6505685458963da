package dev.space.e2b;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.GuestStats;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationService;
import dev.space.core.operation.OperationState;
import dev.space.core.sandbox.CreateSandbox;
import dev.space.core.sandbox.CreateSandbox.Source;
import dev.space.core.sandbox.OnTimeout;
import dev.space.core.sandbox.Sandbox;
import dev.space.core.sandbox.SandboxService;
import dev.space.core.sandbox.SandboxState;
import dev.space.core.sandbox.UpdateSandbox;
import dev.space.core.snapshot.SnapshotService;
import dev.space.core.template.TemplateRef;
import dev.space.http.Exchange;
import dev.space.http.Json;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;

/// Sandboxes over E2B's control plane. Its calls answer when the change is done, so each starts an
/// operation and waits for its end.
final class SandboxRoutes {

  private static final Duration TIMEOUT_V1 = Duration.ofSeconds(15);
  private static final Duration TIMEOUT_V2 = Duration.ofSeconds(300);
  private static final Duration POLL = Duration.ofSeconds(30);
  private static final int FORKS_MAX = 100;
  private static final int REFRESH_SECONDS_MAX = 3600;

  private final SandboxService sandboxes;
  private final OperationService operations;
  private final SnapshotService snapshots;
  private final Views views;
  private final InstantSource clock;

  SandboxRoutes(
      SandboxService sandboxes,
      OperationService operations,
      SnapshotService snapshots,
      Views views,
      InstantSource clock) {
    this.sandboxes = sandboxes;
    this.operations = operations;
    this.snapshots = snapshots;
    this.views = views;
    this.clock = clock;
  }

  void createV1(Exchange exchange, Caller caller) {
    create(exchange, caller, TIMEOUT_V1, false);
  }

  void createV2(Exchange exchange, Caller caller) {
    create(exchange, caller, TIMEOUT_V2, true);
  }

  private void create(
      Exchange exchange, Caller caller, Duration defaultTimeout, boolean alwaysSecure) {
    Body body = Body.read(exchange);
    String template =
        body.text("templateID").orElseThrow(() -> new E2bError(400, "templateID is required"));
    Duration timeout = body.seconds("timeout", Integer.MIN_VALUE).orElse(defaultTimeout);
    if (timeout.isNegative() || timeout.isZero()) {
      throw new E2bError(400, "timeout must be larger than 0");
    }
    boolean autoPause = body.flag("autoPause").orElse(false);
    boolean keepMemory = body.flag("autoPauseMemory").orElse(true);
    boolean autoResume = body.inner("autoResume").flag("enabled").orElse(false);
    if (!keepMemory && (!autoPause || autoResume)) {
      throw new E2bError(400, "autoPauseMemory: false needs autoPause, and excludes autoResume");
    }
    boolean secure = alwaysSecure || body.flag("secure").orElse(false);
    Network.refuseWhatIsNotEnforced(body);
    refuseWhatIsNotThere(body);
    boolean publicPorts = body.inner("network").flag("allowPublicTraffic").orElse(true);
    if (!publicPorts && !secure) {
      throw new E2bError(400, "allowPublicTraffic: false needs a secure sandbox");
    }
    Notes.Settings notes =
        new Notes.Settings(
            !secure,
            !publicPorts,
            body.raw("network").map(Object::toString),
            Optional.of(timeout).filter(_ -> autoResume));
    CreateSandbox request =
        new CreateSandbox(
            source(caller, template),
            Optional.empty(),
            Optional.empty(),
            Optional.empty(),
            body.strings("envVars"),
            Notes.with(body.strings("metadata"), notes),
            Optional.of(timeout),
            onTimeout(autoPause, keepMemory),
            Optional.empty(),
            autoResume);
    Operation done = await(caller, sandboxes.create(caller, request, body.key()));
    Json.send(exchange, 201, views.sandbox(sandboxes.get(caller, sandboxId(done))));
  }

  private static OnTimeout onTimeout(boolean pause, boolean keepMemory) {
    if (!pause) {
      return OnTimeout.DELETE;
    }
    return keepMemory ? OnTimeout.SUSPEND : OnTimeout.SUSPEND_DISK;
  }

  private static void refuseWhatIsNotThere(Body body) {
    if (body.raw("volumeMounts").filter(mounts -> !mounts.isEmpty()).isPresent()) {
      throw new E2bError(501, "volumeMounts is not supported: there are no volumes");
    }
    if (body.inner("iam").raw("tokens").filter(tokens -> !tokens.isEmpty()).isPresent()) {
      throw new E2bError(501, "iam is not supported: there are no workload identities");
    }
  }

  private Source source(Caller caller, String template) {
    if (template.matches("p[a-z0-9]{19}")) {
      try {
        return new Source.FromSnapshot(snapshots.get(caller, template).id());
      } catch (SpaceException e) {
        if (e.code() != ErrorCode.SNAPSHOT_NOT_FOUND) {
          throw e;
        }
      }
    }
    return new Source.FromTemplate(TemplateRef.parse(template));
  }

  void get(Exchange exchange, Caller caller) {
    Json.send(exchange, 200, views.detail(live(exchange, caller)));
  }

  void delete(Exchange exchange, Caller caller) {
    Sandbox sandbox = live(exchange, caller);
    await(caller, sandboxes.delete(caller, sandbox.id(), Optional.empty()));
    exchange.status(204).sendEmpty();
  }

  /// The end is set anew, sooner or later; 0 ends it now.
  void timeout(Exchange exchange, Caller caller) {
    Sandbox sandbox = live(exchange, caller);
    Duration timeout =
        Body.read(exchange)
            .seconds("timeout", 0)
            .orElseThrow(() -> new E2bError(400, "timeout is required"));
    if (timeout.isZero()) {
      Operation end =
          sandbox.onTimeout().suspends()
              ? sandboxes.suspend(
                  caller, sandbox.id(), sandbox.onTimeout() == OnTimeout.SUSPEND, Optional.empty())
              : sandboxes.delete(caller, sandbox.id(), Optional.empty());
      await(caller, end);
    } else {
      setTimeout(caller, sandbox, timeout);
    }
    exchange.status(204).sendEmpty();
  }

  void refreshes(Exchange exchange, Caller caller) {
    Sandbox sandbox = live(exchange, caller);
    OptionalInt seconds = Body.read(exchange).number("duration", 0, REFRESH_SECONDS_MAX);
    extend(caller, sandbox, Duration.ofSeconds(seconds.orElse(15)));
    exchange.status(204).sendEmpty();
  }

  void connectV1(Exchange exchange, Caller caller) {
    connect(exchange, caller, TIMEOUT_V1);
  }

  void connectV2(Exchange exchange, Caller caller) {
    connect(exchange, caller, TIMEOUT_V2);
  }

  /// Running: the end only ever moves away, 200. Asleep: woken with a new end, 201.
  private void connect(Exchange exchange, Caller caller, Duration defaultTimeout) {
    Sandbox sandbox = live(exchange, caller);
    Body body = Body.read(exchange);
    Duration timeout = body.seconds("timeout", 0).orElse(defaultTimeout);
    boolean memory = body.flag("memory").orElse(true);
    boolean asleep = Views.state(sandbox.state()).equals("paused");
    if (asleep) {
      await(caller, sandboxes.wake(caller, sandbox.id(), memory, Optional.empty()));
      setTimeout(caller, sandbox, timeout.isZero() ? defaultTimeout : timeout);
    } else {
      extend(caller, sandbox, timeout);
    }
    Json.send(exchange, asleep ? 201 : 200, views.sandbox(sandboxes.get(caller, sandbox.id())));
  }

  /// The call of older SDKs: waking what runs is a conflict.
  void resume(Exchange exchange, Caller caller) {
    Sandbox sandbox = live(exchange, caller);
    if (!Views.state(sandbox.state()).equals("paused")) {
      throw new E2bError(409, "Sandbox " + sandbox.id() + " is already running");
    }
    connect(exchange, caller, TIMEOUT_V1);
  }

  void pause(Exchange exchange, Caller caller) {
    Sandbox sandbox = live(exchange, caller);
    Body body = Body.read(exchange);
    boolean memory = body.flag("memory").orElse(true);
    if (sandbox.state() == SandboxState.SUSPENDED || sandbox.state() == SandboxState.SUSPENDING) {
      throw new E2bError(409, "Sandbox " + sandbox.id() + " is already paused");
    }
    if (body.flag("requireHealthyGuest").orElse(false)) {
      requireHealthyGuest(caller, sandbox);
    }
    await(caller, sandboxes.suspend(caller, sandbox.id(), memory, Optional.empty()));
    exchange.status(204).sendEmpty();
  }

  private void requireHealthyGuest(Caller caller, Sandbox sandbox) {
    try (var use = sandboxes.use(caller, sandbox.id())) {
      GuestStats _ = use.guest().stats();
    } catch (SpaceException e) {
      throw new E2bError(503, "The sandbox's guest does not answer: " + e.problem().oneLine());
    }
  }

  void fork(Exchange exchange, Caller caller) {
    Sandbox sandbox = live(exchange, caller);
    Body body = Body.read(exchange);
    int count = body.number("count", 1, FORKS_MAX).orElse(1);
    Duration timeout = body.seconds("timeout", 1).orElse(TIMEOUT_V2);
    if (Views.state(sandbox.state()).equals("paused")) {
      throw new E2bError(409, "Sandbox " + sandbox.id() + " is paused");
    }
    Operation end = awaitAny(caller, sandboxes.fork(caller, sandbox.id(), count, Optional.empty()));
    List<Map<String, Object>> answer = new ArrayList<>();
    for (String id : end.resultIds()) {
      Sandbox copy = sandboxes.get(caller, id);
      setTimeout(caller, copy, timeout);
      answer.add(Map.of("sandbox", views.sandbox(copy)));
    }
    for (int missing = end.resultIds().size(); missing < count; missing++) {
      answer.add(
          Map.of(
              "error",
              Map.of(
                  "code", end.error().map(p -> p.code().status()).orElse(500),
                  "message", end.error().map(Problem::oneLine).orElse("the fork failed"))));
    }
    Json.send(exchange, 201, answer);
  }

  void snapshot(Exchange exchange, Caller caller) {
    Sandbox sandbox = live(exchange, caller);
    Body body = Body.read(exchange);
    if (!body.flag("memory").orElse(true)) {
      throw new E2bError(
          400, "filesystem-only snapshots are not supported: a snapshot holds the memory too");
    }
    Optional<String> name = body.text("name");
    Operation done =
        await(caller, sandboxes.snapshot(caller, sandbox.id(), name, Optional.empty()));
    Json.send(
        exchange,
        201,
        Map.of("snapshotID", done.resultIds().getFirst(), "names", name.stream().toList()));
  }

  void network(Exchange exchange, Caller caller) {
    Sandbox sandbox = live(exchange, caller);
    Body body = Body.read(exchange);
    Network.refuseUpdate(body);
    sandboxes.get(caller, sandbox.id());
    exchange.status(204).sendEmpty();
  }

  private void setTimeout(Caller caller, Sandbox sandbox, Duration timeout) {
    sandboxes.update(caller, sandbox.id(), UpdateSandbox.ofTimeout(timeout));
  }

  private void extend(Caller caller, Sandbox sandbox, Duration timeout) {
    Instant end = clock.instant().plus(timeout);
    if (!timeout.isZero() && sandbox.expiresAt().filter(end::isAfter).isPresent()) {
      setTimeout(caller, sandbox, timeout);
    }
  }

  /// The sandbox of the path, unless its life is over.
  private Sandbox live(Exchange exchange, Caller caller) {
    String id = exchange.pathVariable("id");
    int dash = id.indexOf('-');
    Sandbox sandbox;
    try {
      sandbox = sandboxes.get(caller, dash < 0 ? id : id.substring(0, dash));
    } catch (SpaceException e) {
      throw e.code() == ErrorCode.SANDBOX_NOT_FOUND ? notFound(id) : e;
    }
    if (sandbox.state().isOver()) {
      throw notFound(id);
    }
    return sandbox;
  }

  private static E2bError notFound(String id) {
    return new E2bError(404, "Sandbox \"" + id + "\" doesn't exist or you don't have access to it");
  }

  private static String sandboxId(Operation operation) {
    return operation.sandboxId().orElseThrow(() -> new E2bError(500, "the create has no sandbox"));
  }

  /// Waits for the end of an operation and throws its error if it failed.
  private Operation await(Caller caller, Operation started) {
    Operation end = awaitAny(caller, started);
    if (end.state() != OperationState.SUCCEEDED) {
      throw end.error()
          .orElse(Problem.of(ErrorCode.CANCELLED, "The change was cancelled"))
          .toException();
    }
    return end;
  }

  private Operation awaitAny(Caller caller, Operation started) {
    Operation now = started;
    while (!now.state().isTerminal()) {
      now = operations.get(caller, now.id(), POLL);
    }
    return now;
  }
}
