package dev.space.api;

import dev.space.core.Ids;
import dev.space.core.Samples;
import dev.space.core.access.ApiKeys;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.event.EventService;
import dev.space.core.operation.Ledger;
import dev.space.core.operation.OperationService;
import dev.space.core.sandbox.SandboxService;
import dev.space.core.session.AttachmentToken;
import dev.space.core.session.FakeHost;
import dev.space.core.session.SessionService;
import dev.space.core.snapshot.SnapshotService;
import dev.space.core.store.Store;
import dev.space.core.template.BuildLogs;
import dev.space.core.template.TemplateRef;
import dev.space.core.template.TemplateService;
import dev.space.core.usage.UsageService;
import dev.space.http.Router;
import dev.space.http.ServerLimits;
import dev.space.http.TestServer;
import dev.space.node.log.DiskOutputLogs;
import dev.space.node.log.LogBounds;
import dev.space.store.SqliteStore;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.Optional;

/// The control plane on a real store and a fake node, with a key for each of two projects.
final class ApiFixture implements AutoCloseable {
  final ContractCheck contract = new ContractCheck();
  final FakeHost host = new FakeHost();
  final Store store;
  final Ledger ledger;
  final Router router;
  final TestServer server;
  final ApiClient mine;
  final ApiClient theirs;
  final ApiClient nobody;
  final String key;
  volatile Optional<String> notReady = Optional.empty();

  private final UsageService usage;
  private final SessionService sessions;
  private final OperationService operations;
  private final SandboxService sandboxes;

  ApiFixture(Path root) {
    store = SqliteStore.open(root.resolve("data"));
    var random = new SecureRandom();
    var ids = new Ids(random);
    InstantSource clock = InstantSource.system();
    var node = new FakeNode();
    var events = new EventService(store);
    ledger = new Ledger(store, ids, clock, events);
    operations = new OperationService(ledger);
    sandboxes = new SandboxService(ledger, node, clock);
    store.transact(
        tx -> {
          for (String project : new String[] {"p", "q"}) {
            tx.templates().insert(project, Samples.template(Samples.DIGEST));
            tx.templates().tag(project, new TemplateRef.Tagged("base", "latest"), Samples.DIGEST);
          }
          return true;
        });
    operations.recover();
    sandboxes.recover();
    sessions =
        new SessionService(
            host,
            store,
            new DiskOutputLogs(root.resolve("sessions"), LogBounds.DEFAULT),
            new AttachmentToken(new byte[AttachmentToken.KEY_BYTES]),
            clock,
            ids,
            java.time.Duration.ofHours(1));
    var keys = new ApiKeys(store, ids, random, clock);
    usage = new UsageService(store, node, clock, Duration.ofMillis(50));
    var metrics = new ServiceMetrics(node);
    events.listen(metrics::count);
    router =
        NativeApi.router(
            new ApiServices(
                keys,
                sandboxes,
                operations,
                sessions,
                new TemplateService(
                    ledger,
                    operations,
                    recipe -> {
                      throw Problem.of(ErrorCode.NOT_SUPPORTED, "no builds here").toException();
                    },
                    node,
                    new BuildLogs(root.resolve("builds"))),
                new SnapshotService(ledger, node),
                events,
                usage,
                node),
            new ApiSettings(Optional.empty(), () -> 8701, "0.1.0", "none", () -> notReady),
            metrics);
    server =
        new TestServer(router, ServerLimits.DEFAULT.withKeepAlive(Duration.ofMillis(300)), metrics);
    key = keys.create("p", "mine").secret();
    mine = new ApiClient(server.url(""), key, contract);
    theirs = new ApiClient(server.url(""), keys.create("q", "theirs").secret(), contract);
    nobody = new ApiClient(server.url(""), "", contract);
  }

  @Override
  public void close() {
    mine.close();
    theirs.close();
    nobody.close();
    server.close();
    usage.close();
    sessions.close();
    sandboxes.close();
    operations.close();
    ledger.close();
    store.close();
  }
}
