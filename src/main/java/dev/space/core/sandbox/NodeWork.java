package dev.space.core.sandbox;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.node.LaunchSpec;
import dev.space.core.node.NodeRuntime;
import dev.space.core.operation.Lanes;
import dev.space.core.operation.Ledger;
import dev.space.core.snapshot.Snapshot;
import dev.space.core.snapshot.SnapshotService;
import dev.space.core.template.Template;
import dev.space.core.template.TemplateRef;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Calls to the node, with their failures as values.
final class NodeWork {

  private static final Logger LOG = LoggerFactory.getLogger(NodeWork.class);

  /// Waits between the tries of what must succeed in the end.
  private static final List<Duration> RETRIES =
      List.of(Duration.ofMillis(100), Duration.ofMillis(400), Duration.ofSeconds(1));

  private static final int DEFAULTS_MAX = 1000;

  private final Ledger ledger;
  private final NodeRuntime node;

  /// By digest, which stands for the recipe too, so they never change.
  private final ConcurrentHashMap<String, Template.Defaults> defaults = new ConcurrentHashMap<>();

  NodeWork(Ledger ledger, NodeRuntime node) {
    this.ledger = ledger;
    this.node = node;
  }

  NodeRuntime node() {
    return node;
  }

  /// What the node needs to make this sandbox run.
  ///
  /// @param newIdentity whether its guest has to become another one first
  LaunchSpec spec(Sandbox s, boolean newIdentity) {
    Template.Defaults defaults = defaults(s);
    Map<String, String> env = new HashMap<>(defaults.env());
    env.putAll(s.env());
    LaunchSpec.Source source =
        s.snapshotId()
            .<LaunchSpec.Source>map(LaunchSpec.Source.Snapshot::new)
            .orElseGet(() -> new LaunchSpec.Source.Template(s.templateDigest()));
    return new LaunchSpec(
        s.id(),
        source,
        s.resources(),
        new Guest.Adoption(
            newIdentity, s.id(), s.id(), Map.copyOf(env), defaults.user(), defaults.workdir()));
  }

  private Template.Defaults defaults(Sandbox s) {
    Template.Defaults known = defaults.get(s.templateDigest());
    if (known != null) {
      return known;
    }
    Optional<Template> found =
        ledger
            .store()
            .read(
                tx -> tx.templates().find(s.project(), new TemplateRef.Digest(s.templateDigest())));
    found
        .filter(template -> defaults.size() < DEFAULTS_MAX)
        .ifPresent(template -> defaults.put(template.digest(), template.defaults()));
    return found.map(Template::defaults).orElse(Template.Defaults.NONE);
  }

  /// Makes a call that a delete may interrupt; says why it failed.
  Optional<Problem> attempt(Lanes.Job job, Runnable call) {
    return attempt(
        () ->
            job.call(
                () -> {
                  call.run();
                  return true;
                }));
  }

  /// Makes a call; says why it failed.
  Optional<Problem> attempt(Runnable call) {
    try {
      call.run();
      return Optional.empty();
    } catch (SpaceException e) {
      return Optional.of(e.problem());
    } catch (RuntimeException e) {
      LOG.error("a call to the node failed by a defect", e);
      return Optional.of(
          Problem.of(ErrorCode.INTERNAL, "the node failed by a defect")
              .because(e.getClass().getSimpleName())
              .remedy("Look for the sandbox's id in the log and report it."));
    }
  }

  /// Removes all that a sandbox holds, with some patience; says why it could not.
  Optional<Problem> remove(String sandboxId) {
    Optional<Problem> failure = attempt(() -> node.delete(sandboxId));
    for (Duration pause : RETRIES) {
      if (failure.isEmpty() || ledger.pause(pause)) {
        break;
      }
      failure = attempt(() -> node.delete(sandboxId));
    }
    failure.ifPresent(p -> LOG.warn("sandbox {} is not removed: {}", sandboxId, p.oneLine()));
    return failure;
  }

  /// Removes internal snapshots that no sandbox was made from and no operation is making: those of
  /// forks whose copies are gone, and those that a crash left half-made.
  void sweepSnapshots() {
    List<String> unused =
        ledger
            .store()
            .read(
                tx -> {
                  Set<String> inWork = new HashSet<>();
                  tx.operations()
                      .open()
                      .forEach(
                          o ->
                              Optional.ofNullable(
                                      tx.operations().intent(o.id()).get(SnapshotWork.SNAPSHOT))
                                  .ifPresent(inWork::add));
                  return tx.snapshots().internal().stream()
                      .map(Snapshot::id)
                      .filter(id -> !inWork.contains(id) && !tx.sandboxes().anyOfSnapshot(id))
                      .toList();
                });
    unused.forEach(this::sweepSnapshot);
  }

  /// Removes one internal snapshot unless a sandbox on the node still maps it: that one keeps it
  /// until it is deleted itself.
  void sweepSnapshot(String snapshotId) {
    try {
      node.deleteSnapshot(snapshotId);
    } catch (SpaceException e) {
      if (e.code() == ErrorCode.CONFLICT) {
        return;
      }
      if (!SnapshotService.isGone(e)) {
        LOG.warn("snapshot {} is not removed: {}", snapshotId, e.getMessage());
        return;
      }
    }
    ledger.persist(entry -> entry.tx().snapshots().delete(snapshotId));
  }
}
