package dev.space.core.sandbox;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.operation.Entry;
import dev.space.core.operation.Lanes;
import dev.space.core.operation.Ledger;
import dev.space.core.operation.Operation;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

/// Forks: one snapshot of the source that nobody else sees, then as many creates from it.
///
/// The copies' ids are chosen with the request. When some copies fail, the others stay and are the
/// operation's results, in order; the operation fails, says how many are missing, and leaves
/// nothing of those. When the source is deleted meanwhile, the fork is cancelled and no copy stays.
final class ForkWork {

  /// Intent: the ids of the copies, separated by commas.
  static final String COPIES = "copies";

  private static final Duration COPIES_WAIT = Duration.ofDays(1);

  private final Ledger ledger;
  private final Lanes lanes;
  private final NodeWork nodes;
  private final SandboxMoves moves;
  private final SnapshotWork snapshots;

  ForkWork(Ledger ledger, Lanes lanes, NodeWork nodes, SandboxMoves moves, SnapshotWork snapshots) {
    this.ledger = ledger;
    this.lanes = lanes;
    this.nodes = nodes;
    this.moves = moves;
    this.snapshots = snapshots;
  }

  static List<String> copies(Map<String, String> intent) {
    return Stream.of(intent.getOrDefault(COPIES, "").split(","))
        .filter(id -> !id.isEmpty())
        .toList();
  }

  void fork(Lanes.Job job, Operation o, Sandbox source, Map<String, String> intent) {
    String snapshotId = SnapshotWork.id(intent);
    List<String> ids = copies(intent);
    ledger.progress(o.id(), "saving the source");
    boolean going =
        snapshots.take(
            job,
            o,
            source,
            intent,
            true,
            (entry, _) ->
                ids.forEach(id -> moves.insert(entry, copy(entry, source, id, snapshotId), o)));
    if (!going) {
      return;
    }
    ledger.progress(o.id(), "starting " + ids.size() + " copies");
    List<Lanes.Job> jobs =
        ids.stream().map(id -> lanes.submit(id, own -> create(own, id, o.id()))).toList();
    nodes.attempt(job, () -> jobs.forEach(copy -> copy.awaitEnd(COPIES_WAIT)));
    if (job.isPreempted()) {
      ids.forEach(this::withdraw);
    }
    if (finish(o.id(), ids, "")) {
      nodes.sweepSnapshot(snapshotId);
    }
  }

  private static Sandbox copy(Entry entry, Sandbox source, String id, String snapshotId) {
    return new Sandbox(
        id,
        source.project(),
        source.template(),
        source.templateDigest(),
        Optional.of(snapshotId),
        SandboxState.CREATING,
        Optional.empty(),
        source.resources(),
        source.env(),
        source.metadata(),
        source.timeout(),
        Optional.empty(),
        source.onTimeout(),
        source.idleTimeout(),
        source.autoWake(),
        Set.of(), // who made a port public meant that sandbox
        false,
        source.node(),
        entry.now(),
        entry.now(),
        1);
  }

  private void create(Lanes.Job job, String id, String operationId) {
    try {
      Optional<Sandbox> copy =
          ledger.store().<Optional<Sandbox>>read(tx -> tx.sandboxes().find(id));
      if (copy.filter(s -> s.state() == SandboxState.CREATING).isEmpty()) {
        return;
      }
      Optional<Problem> failure =
          nodes.attempt(
              job,
              () ->
                  nodes
                      .node()
                      .create(
                          nodes.spec(copy.get(), true),
                          step -> ledger.progress(operationId, step)));
      if (failure.isPresent()) {
        nodes.remove(id);
      }
      ledger.persist(entry -> settleCopy(entry, id, Optional.of(operationId), failure));
    } finally {
      if (job.isPreempted()) {
        nodes.remove(id);
      }
    }
  }

  /// Makes a copy run, or a tombstone of it with the failure as its cause.
  boolean settleCopy(Entry entry, String id, Optional<String> by, Optional<Problem> failure) {
    Sandbox s = entry.tx().sandboxes().find(id).orElseThrow();
    if (s.state() != SandboxState.CREATING) {
      return false;
    }
    if (failure.isEmpty()) {
      moves.move(entry, s, SandboxEvent.CREATE_SUCCEEDED, Optional.empty(), by);
    } else {
      bury(entry, moves.move(entry, s, SandboxEvent.CREATE_FAILED, failure, by), by);
    }
    return true;
  }

  private void bury(Entry entry, Sandbox s, Optional<String> by) {
    Sandbox going = moves.move(entry, s, SandboxEvent.DELETE_REQUESTED, s.cause(), by);
    moves.move(entry, going, SandboxEvent.DELETE_SUCCEEDED, s.cause(), by);
  }

  /// Removes a copy of a fork that was cancelled.
  private void withdraw(String id) {
    boolean mine =
        ledger.<Boolean>persist(
            entry -> {
              Sandbox s = entry.tx().sandboxes().find(id).orElseThrow();
              if (s.state() == SandboxState.DELETING || s.state() == SandboxState.DELETED) {
                return false;
              }
              moves.move(
                  entry, s, SandboxEvent.DELETE_REQUESTED, Optional.empty(), Optional.empty());
              entry
                  .tx()
                  .operations()
                  .open(id)
                  .forEach(open -> entry.cancel(open, SandboxDeletes.reason()));
              return true;
            });
    if (!mine) {
      return;
    }
    List<Lanes.Job> jobs = lanes.preempt(id);
    nodes.remove(id);
    jobs.forEach(job -> job.awaitEnd(SandboxDeletes.UNWIND_WAIT));
    if (!jobs.isEmpty()) {
      nodes.remove(id);
    }
    ledger.persist(
        entry -> {
          Sandbox s = entry.tx().sandboxes().find(id).orElseThrow();
          return s.state() == SandboxState.DELETED
              ? s
              : moves.move(
                  entry, s, SandboxEvent.DELETE_SUCCEEDED, Optional.empty(), Optional.empty());
        });
  }

  /// Ends a fork by what its copies have become.
  ///
  /// @param why what is known of the missing ones, beside their own causes
  /// @return false when a stop of the service left copies half-made: the next start ends it
  boolean finish(String operationId, List<String> ids, String why) {
    return ledger.<Boolean>persist(
        entry -> {
          Operation o = entry.tx().operations().find(operationId).orElseThrow();
          if (o.state().isTerminal()) {
            return true;
          }
          List<String> made = new ArrayList<>();
          Optional<Problem> first = Optional.empty();
          for (String id : ids) {
            Optional<Sandbox> copy = entry.tx().sandboxes().find(id);
            if (copy.filter(s -> s.state() == SandboxState.CREATING).isPresent()) {
              return false;
            }
            if (copy.isPresent() && !copy.get().state().isOver()) {
              made.add(id);
            } else if (first.isEmpty()) {
              first = copy.flatMap(Sandbox::cause);
            }
          }
          if (made.size() == ids.size()) {
            entry.succeed(o, made);
          } else {
            entry.fail(o, missing(ids.size() - made.size(), ids.size(), first, why), made);
          }
          return true;
        });
  }

  private static Problem missing(int missing, int all, Optional<Problem> first, String why) {
    Problem problem =
        Problem.of(
            first.map(Problem::code).orElse(ErrorCode.CANCELLED),
            "%d of %d copies could not be made; the results are the others"
                .formatted(missing, all));
    if (first.isPresent()) {
      problem = problem.because(first.get().oneLine());
    } else if (!why.isEmpty()) {
      problem = problem.because(why);
    }
    return problem.remedy(
        first
            .flatMap(Problem::remedy)
            .orElse("Fork again for the missing ones, or delete the results."));
  }
}
