package dev.space.core.sandbox;

import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// Which sandboxes to list. All conditions hold together; deleted ones are never listed.
///
/// @param states empty means every state
/// @param template a reference or digest
/// @param metadata pairs that must all be there
/// @param limit 1 to 1000
public record SandboxQuery(
    Set<SandboxState> states,
    Optional<String> template,
    Map<String, String> metadata,
    int limit,
    Optional<String> cursor) {}
