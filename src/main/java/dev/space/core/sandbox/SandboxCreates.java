package dev.space.core.sandbox;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.node.NodeRuntime;
import dev.space.core.operation.Entry;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationKind;
import dev.space.core.snapshot.Snapshot;
import dev.space.core.template.Resources;
import dev.space.core.template.Template;
import dev.space.core.template.TemplateRef;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// Makes records out of requests.
final class SandboxCreates {

  private final NodeRuntime node;
  private final SandboxMoves moves;

  SandboxCreates(NodeRuntime node, SandboxMoves moves) {
    this.node = node;
    this.moves = moves;
  }

  private record Origin(
      String template, String digest, Optional<String> snapshotId, Resources resources) {}

  /// Records a new sandbox and the operation that makes it.
  Operation record(Entry entry, Caller caller, String id, CreateSandbox request) {
    Origin origin = origin(entry, caller, request);
    Operation operation =
        entry.begin(caller.project(), OperationKind.CREATE, Optional.of(id), Map.of());
    Sandbox sandbox =
        new Sandbox(
            id,
            caller.project(),
            origin.template(),
            origin.digest(),
            origin.snapshotId(),
            SandboxState.CREATING,
            Optional.empty(),
            origin.resources(),
            Map.copyOf(request.env()),
            Map.copyOf(request.metadata()),
            request.timeout(),
            Optional.empty(), // its time begins when it runs
            request.onTimeout(),
            request.idleTimeout(),
            request.autoWake(),
            Set.copyOf(request.publicPorts()),
            false,
            node.name(),
            entry.now(),
            entry.now(),
            1);
    moves.insert(entry, sandbox, operation);
    return operation;
  }

  private static Origin origin(Entry entry, Caller caller, CreateSandbox request) {
    return switch (request.source()) {
      case CreateSandbox.Source.FromTemplate(TemplateRef ref) -> {
        Template template =
            entry
                .tx()
                .templates()
                .find(caller.project(), ref)
                .orElseThrow(
                    () ->
                        Problem.of(ErrorCode.TEMPLATE_NOT_FOUND, "there is no template " + ref)
                            .remedy("List the templates there are, or build this one.")
                            .toException());
        Resources defaults = template.defaults().resources();
        yield new Origin(
            ref.toString(),
            template.digest(),
            Optional.empty(),
            new Resources(
                request.vcpus().orElse(defaults.vcpus()),
                request.memoryMib().orElse(defaults.memoryMib()),
                request.diskMib().orElse(defaults.diskMib())));
      }
      case CreateSandbox.Source.FromSnapshot(String snapshotId) -> {
        Snapshot snapshot =
            entry
                .tx()
                .snapshots()
                .find(caller.project(), snapshotId)
                .orElseThrow(
                    () ->
                        Problem.of(ErrorCode.SNAPSHOT_NOT_FOUND, "no snapshot has this id")
                            .remedy("List the snapshots there are.")
                            .toException());
        SandboxLimits.sameShape(request, snapshot.resources());
        yield new Origin(
            snapshot.template(),
            snapshot.templateDigest(),
            Optional.of(snapshotId),
            snapshot.resources());
      }
    };
  }

  /// A record with the changes that a caller asks for.
  Sandbox changed(Sandbox s, UpdateSandbox change, Instant now) {
    Optional<Duration> timeout =
        change.timeout().isPresent() ? change.timeout().filter(d -> !d.isZero()) : s.timeout();
    Optional<Instant> expires = s.expiresAt();
    if (change.timeout().isPresent()) {
      // The time of a create begins when it runs.
      boolean counts = s.state() != SandboxState.CREATING;
      expires = counts ? timeout.map(now::plus) : Optional.empty();
    }
    Optional<Duration> idle =
        change.idleTimeout().isPresent()
            ? change.idleTimeout().filter(d -> !d.isZero())
            : s.idleTimeout();
    return s.expiring(timeout, expires, change.onTimeout().orElse(s.onTimeout()))
        .described(
            idle,
            change.autoWake().orElse(s.autoWake()),
            change.publicPorts().<Set<Integer>>map(Set::copyOf).orElse(s.publicPorts()),
            change.metadata().<Map<String, String>>map(Map::copyOf).orElse(s.metadata()));
  }
}
