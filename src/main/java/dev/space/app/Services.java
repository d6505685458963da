package dev.space.app;

import dev.space.core.Ids;
import dev.space.core.access.ApiKeys;
import dev.space.core.access.Caller;
import dev.space.core.event.EventService;
import dev.space.core.guest.Guest;
import dev.space.core.operation.Ledger;
import dev.space.core.operation.OperationService;
import dev.space.core.sandbox.Sandbox;
import dev.space.core.sandbox.SandboxService;
import dev.space.core.sandbox.SandboxState;
import dev.space.core.session.AttachmentToken;
import dev.space.core.session.SessionHost;
import dev.space.core.session.SessionService;
import dev.space.core.snapshot.SnapshotService;
import dev.space.core.store.Store;
import dev.space.core.template.BuildLogs;
import dev.space.core.template.TemplateRef;
import dev.space.core.template.TemplateService;
import dev.space.core.usage.UsageService;
import dev.space.node.FailPoints;
import dev.space.node.Node;
import dev.space.node.NodeSettings;
import dev.space.node.log.DiskOutputLogs;
import dev.space.node.log.KeyFile;
import dev.space.node.log.LogBounds;
import dev.space.store.SqliteStore;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/// The domain's services over one store and one node.
final class Services implements SessionHost, AutoCloseable {

  private static final long MIB = 1024 * 1024;

  /// How long a stop waits for sandboxes to be suspended; what isn't then, is kept.
  private static final Duration STOP_SUSPENDS_MAX = Duration.ofMinutes(5);

  private final SpaceConfig config;
  private final Driver driver;
  private final Store store;
  private final Node node;
  private final EventService events;
  private final Ledger ledger;
  private final ApiKeys keys;
  private final SandboxService sandboxes;
  private final OperationService operations;
  private final SnapshotService snapshots;
  private final TemplateService templates;
  private final AttachmentToken tokens;
  private final SessionService sessions;
  private final UsageService usage;

  Services(SpaceConfig config, Driver driver, InstantSource clock, SecureRandom random) {
    this.config = config;
    this.driver = driver;
    Path data = config.dataDir();
    this.store = SqliteStore.open(data);
    var ids = new Ids(random);
    this.node =
        new Node(
            nodeSettings(config),
            driver.vmm(),
            driver.connector(),
            driver.images(),
            driver.disks(),
            FailPoints.NONE);
    this.events = new EventService(store);
    this.ledger = new Ledger(store, ids, clock, events);
    this.keys = new ApiKeys(store, ids, random, clock);
    this.operations = new OperationService(ledger);
    this.sandboxes = new SandboxService(ledger, node, clock);
    this.snapshots = new SnapshotService(ledger, node);
    this.templates =
        new TemplateService(
            ledger, operations, driver.builder(), node, new BuildLogs(data.resolve("logs/builds")));
    this.tokens = new AttachmentToken(KeyFile.readOrMake(data.resolve("token-key"), random));
    this.sessions =
        new SessionService(
            this,
            store,
            new DiskOutputLogs(
                data.resolve("sessions"), LogBounds.of(config.sessions().logBytesMax())),
            tokens,
            clock,
            ids,
            Duration.ofSeconds(config.sessions().tokenSeconds()));
    this.usage = new UsageService(store, node, clock, UsageService.INTERVAL);
    sandboxes.listen(this::sandboxChanged);
  }

  private static NodeSettings nodeSettings(SpaceConfig config) {
    SpaceConfig.Limits limits = config.limits();
    long memory = limits.memoryMib() > 0 ? limits.memoryMib() * MIB : hostMemoryBytes();
    return NodeSettings.of(
        "local",
        config.dataDir(),
        limits.vmsMax(),
        memory,
        limits.memoryOvercommit(),
        limits.diskReserveMib() * MIB);
  }

  private static long hostMemoryBytes() {
    return ManagementFactory.getOperatingSystemMXBean()
            instanceof com.sun.management.OperatingSystemMXBean host
        ? host.getTotalMemorySize()
        : 4096 * MIB;
  }

  private void sandboxChanged(SandboxState before, Sandbox now) {
    switch (now.state()) {
      case RUNNING -> sessions.sandboxRunning(now.id());
      case FAILED, STOPPED -> now.cause().ifPresent(cause -> sessions.sandboxOver(now.id(), cause));
      case DELETED -> sessions.sandboxDeleted(now.id());
      case CREATING, PAUSING, PAUSED, RESUMING, SUSPENDING, SUSPENDED, WAKING, DELETING -> {
        // Sessions wait for the next link.
      }
    }
  }

  /// Finishes or rolls back what a former daemon left.
  void recover() {
    templates.register(
        Caller.DEFAULT_PROJECT, new TemplateRef.Tagged("base", "latest"), driver.base());
    operations.recover();
    sandboxes.recover();
    sessions.recover();
  }

  /// Starts to keep the configured numbers of idle VMs, of whatever the tags lead to.
  void fillPools() {
    var targets = new WarmTargets(config.warm(), templates, node);
    templates.onTagMove(targets::refresh);
    targets.refresh();
  }

  /// Does with sandboxes what the configuration says of a stop of the service.
  void settle() {
    switch (config.onStop()) {
      case KEEP -> {}
      case SUSPEND -> sandboxes.suspendAll(STOP_SUSPENDS_MAX);
    }
  }

  Node node() {
    return node;
  }

  EventService events() {
    return events;
  }

  ApiKeys keys() {
    return keys;
  }

  SandboxService sandboxes() {
    return sandboxes;
  }

  OperationService operations() {
    return operations;
  }

  SnapshotService snapshots() {
    return snapshots;
  }

  TemplateService templates() {
    return templates;
  }

  AttachmentToken tokens() {
    return tokens;
  }

  UsageService usage() {
    return usage;
  }

  SessionService sessions() {
    return sessions;
  }

  @Override
  public Sandbox get(Caller caller, String sandboxId) {
    return sandboxes.get(caller, sandboxId);
  }

  @Override
  public SandboxService.Use use(Caller caller, String sandboxId) {
    return sandboxes.use(caller, sandboxId);
  }

  @Override
  public Guest guest(String sandboxId) {
    return node.guest(sandboxId);
  }

  @Override
  public Optional<Sandbox> find(String sandboxId) {
    return store
        .<Optional<Sandbox>>read(tx -> tx.sandboxes().find(sandboxId))
        .filter(sandbox -> sandbox.state() != SandboxState.DELETED);
  }

  /// All sandboxes that run, whoever they belong to.
  Stream<Sandbox> running() {
    return store
        .<List<Sandbox>>read(tx -> tx.sandboxes().inStates(EnumSet.of(SandboxState.RUNNING)))
        .stream();
  }

  @Override
  public void close() {
    usage.close();
    sessions.close();
    sandboxes.close();
    node.close();
    store.close();
  }
}
