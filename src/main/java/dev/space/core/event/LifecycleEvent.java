package dev.space.core.event;

import java.time.Instant;
import java.util.Map;
import java.util.Optional;

/// Something that happened to a sandbox, operation or template.
///
/// @param seq grows by one with each event of the node
/// @param type such as `sandbox.running`, `operation.failed`, `template.tagged`
/// @param data a few short facts about it, never secrets
public record LifecycleEvent(
    long seq,
    String project,
    Instant at,
    String type,
    Optional<String> sandboxId,
    Optional<String> operationId,
    Map<String, String> data) {}
