package dev.space.core.sandbox;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.core.Ids;
import dev.space.core.Samples;
import dev.space.core.access.Caller;
import dev.space.core.event.EventService;
import dev.space.core.operation.Ledger;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationService;
import dev.space.core.operation.OperationState;
import dev.space.core.snapshot.SnapshotService;
import dev.space.core.store.Store;
import dev.space.core.template.TemplateRef;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.Optional;

/// The services of one daemon over a store and a fake node.
final class Daemon implements AutoCloseable {

  static final Caller ME = new Caller(Caller.DEFAULT_PROJECT, "k1", "r1");
  static final Caller OTHER = new Caller("other", "k2", "r2");
  static final TemplateRef BASE = new TemplateRef.Tagged("base", "latest");

  final Store store;
  final FakeNode node;
  final Ledger ledger;
  final EventService events;
  final OperationService operations;
  final SnapshotService snapshots;
  final SandboxService sandboxes;

  Daemon(Store store, FakeHost host, InstantSource clock) {
    this.store = store;
    this.node = new FakeNode(host);
    this.events = new EventService(store);
    this.ledger = new Ledger(store, new Ids(new SecureRandom()), clock, events);
    this.operations = new OperationService(ledger);
    this.snapshots = new SnapshotService(ledger, node);
    this.sandboxes = new SandboxService(ledger, node, clock);
  }

  Daemon start() {
    store.transact(
        tx -> {
          for (Caller caller : new Caller[] {ME, OTHER}) {
            tx.templates().insert(caller.project(), Samples.template(Samples.DIGEST));
            tx.templates()
                .tag(caller.project(), new TemplateRef.Tagged("base", "latest"), Samples.DIGEST);
          }
          return true;
        });
    operations.recover();
    sandboxes.recover();
    return this;
  }

  /// The operation at its end.
  Operation ended(Operation operation) {
    Caller caller = operation.project().equals(OTHER.project()) ? OTHER : ME;
    Operation ended = operations.get(caller, operation.id(), Duration.ofSeconds(20));
    assertThat(ended.state().isTerminal()).as("%s ended", ended).isTrue();
    return ended;
  }

  Operation succeeded(Operation operation) {
    Operation ended = ended(operation);
    assertThat(ended.state()).as("%s", ended).isEqualTo(OperationState.SUCCEEDED);
    return ended;
  }

  Operation failed(Operation operation) {
    Operation ended = ended(operation);
    assertThat(ended.state()).as("%s", ended).isEqualTo(OperationState.FAILED);
    assertThat(ended.error()).isPresent();
    return ended;
  }

  Operation create() {
    return create(CreateSandbox.of(BASE));
  }

  Operation create(CreateSandbox request) {
    return sandboxes.create(ME, request, Optional.empty());
  }

  /// A sandbox that runs.
  String running() {
    return succeeded(create()).resultIds().getFirst();
  }

  String running(CreateSandbox request) {
    return succeeded(create(request)).resultIds().getFirst();
  }

  SandboxState state(String id) {
    return sandboxes.get(ME, id).state();
  }

  /// Stops as a power cut would: nothing more is written, nothing more happens.
  void crash() {
    node.crash();
    ledger.close();
  }

  @Override
  public void close() {
    sandboxes.close();
    operations.close();
  }
}
