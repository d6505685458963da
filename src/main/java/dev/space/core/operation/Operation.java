package dev.space.core.operation;

import dev.space.core.error.Problem;
import java.time.Instant;
import java.util.List;
import java.util.Optional;

/// One asynchronous lifecycle change.
///
/// @param sandboxId the sandbox it changes; empty for template builds
/// @param progress one line about the step at hand, for people
/// @param error why it failed
/// @param resultIds what it made: the sandbox of a create, the copies of a fork, the snapshot, the
///   digest of a template build
public record Operation(
    String id,
    String project,
    OperationKind kind,
    Optional<String> sandboxId,
    OperationState state,
    Optional<String> progress,
    Optional<Problem> error,
    List<String> resultIds,
    Instant createdAt,
    Optional<Instant> startedAt,
    Optional<Instant> endedAt,
    long rev) {}
