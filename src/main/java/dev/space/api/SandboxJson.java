package dev.space.api;

import dev.space.core.sandbox.Sandbox;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/// A sandbox in answers. Its environment is not there: it may hold secrets.
record SandboxJson(
    String id,
    String template,
    String templateDigest,
    Optional<String> snapshotId,
    String state,
    Optional<ProblemBodyJson> cause,
    ResourcesJson resources,
    Map<String, String> metadata,
    Optional<String> timeout,
    Optional<String> expiresAt,
    String onTimeout,
    Optional<String> idleTimeout,
    boolean autoWake,
    List<Integer> publicPorts,
    boolean diskOnly,
    String node,
    String createdAt,
    String stateChangedAt) {
  static SandboxJson of(Sandbox s) {
    return new SandboxJson(
        s.id(),
        s.template(),
        s.templateDigest(),
        s.snapshotId(),
        s.state().wire(),
        s.cause().map(ProblemBodyJson::of),
        ResourcesJson.of(s.resources()),
        s.metadata(),
        s.timeout().map(Calls::text),
        s.expiresAt().map(Calls::text),
        s.onTimeout().name().toLowerCase(Locale.ROOT),
        s.idleTimeout().map(Calls::text),
        s.autoWake(),
        s.publicPorts().stream().sorted().toList(),
        s.diskOnly(),
        s.node(),
        Calls.text(s.createdAt()),
        Calls.text(s.stateChangedAt()));
  }
}
