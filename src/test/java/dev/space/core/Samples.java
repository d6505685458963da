package dev.space.core;

import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationKind;
import dev.space.core.operation.OperationState;
import dev.space.core.sandbox.OnTimeout;
import dev.space.core.sandbox.Sandbox;
import dev.space.core.sandbox.SandboxState;
import dev.space.core.snapshot.Snapshot;
import dev.space.core.template.Resources;
import dev.space.core.template.Template;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// Records for tests.
public final class Samples {

  public static final Instant NOW = Instant.ofEpochMilli(1_800_000_000_000L);
  public static final String DIGEST = "sha256:" + "a".repeat(64);

  private Samples() {}

  public static Template template(String digest) {
    return new Template(
        digest,
        "base",
        List.of(),
        new Template.Defaults(
            Map.of("LANG", "C.UTF-8"),
            Optional.of("user"),
            Optional.empty(),
            Optional.of(List.of("sleep", "1")),
            Optional.empty(),
            Resources.DEFAULT,
            0),
        12345,
        NOW);
  }

  public static Sandbox sandbox(String id, String project, Instant created, SandboxState state) {
    return new Sandbox(
        id,
        project,
        "base:latest",
        DIGEST,
        Optional.empty(),
        state,
        Optional.empty(),
        Resources.DEFAULT,
        Map.of("A", "1"),
        Map.of(),
        Optional.of(Duration.ofSeconds(60)),
        Optional.of(created.plusSeconds(60)),
        OnTimeout.SUSPEND,
        Optional.of(Duration.ofMillis(1500)),
        true,
        java.util.Set.of(80, 8080),
        false,
        "here",
        created,
        created,
        1);
  }

  public static Sandbox withMetadata(Sandbox s, Map<String, String> metadata) {
    return new Sandbox(
        s.id(),
        s.project(),
        s.template(),
        s.templateDigest(),
        s.snapshotId(),
        s.state(),
        s.cause(),
        s.resources(),
        s.env(),
        metadata,
        s.timeout(),
        s.expiresAt(),
        s.onTimeout(),
        s.idleTimeout(),
        s.autoWake(),
        s.publicPorts(),
        s.diskOnly(),
        s.node(),
        s.createdAt(),
        s.stateChangedAt(),
        s.rev());
  }

  public static Operation operation(
      String id, String project, Optional<String> sandbox, OperationKind kind, Instant at) {
    return new Operation(
        id,
        project,
        kind,
        sandbox,
        OperationState.PENDING,
        Optional.empty(),
        Optional.empty(),
        List.of(),
        at,
        Optional.empty(),
        Optional.empty(),
        1);
  }

  public static Snapshot snapshot(String id, String project, String sandboxId) {
    return new Snapshot(
        id,
        project,
        sandboxId,
        Optional.of("nightly"),
        "base:latest",
        DIGEST,
        Resources.DEFAULT,
        "here",
        99,
        NOW);
  }
}
