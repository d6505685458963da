package dev.space.api;

import dev.space.core.operation.Operation;
import java.util.List;
import java.util.Optional;

record OperationJson(
    String id,
    String kind,
    Optional<String> sandboxId,
    String state,
    Optional<String> progress,
    Optional<ProblemBodyJson> error,
    List<String> resultIds,
    String createdAt,
    Optional<String> startedAt,
    Optional<String> endedAt) {
  static OperationJson of(Operation o) {
    return new OperationJson(
        o.id(),
        o.kind().wire(),
        o.sandboxId(),
        o.state().wire(),
        o.progress(),
        o.error().map(ProblemBodyJson::of),
        o.resultIds(),
        Calls.text(o.createdAt()),
        o.startedAt().map(Calls::text),
        o.endedAt().map(Calls::text));
  }
}
