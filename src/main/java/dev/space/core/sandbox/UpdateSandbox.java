package dev.space.core.sandbox;

import java.time.Duration;
import java.util.Map;
import java.util.Optional;

/// Changes to a sandbox's record. What is absent stays.
///
/// @param timeout counted from now; zero takes the timeout away
/// @param metadata replaces the whole map
public record UpdateSandbox(
    Optional<Duration> timeout,
    Optional<OnTimeout> onTimeout,
    Optional<Duration> idleTimeout,
    Optional<Boolean> autoWake,
    Optional<Map<String, String>> metadata) {}
