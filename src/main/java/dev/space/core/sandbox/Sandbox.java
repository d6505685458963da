package dev.space.core.sandbox;

import dev.space.core.error.Problem;
import dev.space.core.template.Resources;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// A sandbox as it is recorded: one microVM, one writable disk, made from a template or a snapshot.
///
/// @param id 20 characters `[a-z0-9]`, never reused
/// @param project whose it is; nobody else ever sees it
/// @param template the reference it was created with, such as `base:latest`
/// @param templateDigest what that reference led to at the time
/// @param snapshotId the snapshot it was created from, if it was
/// @param cause why it is failed or stopped
/// @param env environment of all its processes; may hold secrets, so it is never in answers or logs
/// @param metadata the caller's own labels
/// @param timeout how long it may live from its create, its last extension, or a wake after it had
///   run out
/// @param expiresAt when `onTimeout` happens; empty means never
/// @param idleTimeout how long it may be without session, attachment, file or port traffic
/// @param autoWake whether traffic wakes it
/// @param publicPorts ports whose route asks for no key and no token
/// @param diskOnly whether it is, or is being, suspended without its memory
/// @param node the host that owns its VM
/// @param rev grows with every change of the record; compare-and-set goes by it
public record Sandbox(
    String id,
    String project,
    String template,
    String templateDigest,
    Optional<String> snapshotId,
    SandboxState state,
    Optional<Problem> cause,
    Resources resources,
    Map<String, String> env,
    Map<String, String> metadata,
    Optional<Duration> timeout,
    Optional<Instant> expiresAt,
    OnTimeout onTimeout,
    Optional<Duration> idleTimeout,
    boolean autoWake,
    Set<Integer> publicPorts,
    boolean diskOnly,
    String node,
    Instant createdAt,
    Instant stateChangedAt,
    long rev) {

  Sandbox moved(SandboxState next, Optional<Problem> why, Instant at) {
    return new Sandbox(
        id,
        project,
        template,
        templateDigest,
        snapshotId,
        next,
        why,
        resources,
        env,
        metadata,
        timeout,
        expiresAt,
        onTimeout,
        idleTimeout,
        autoWake,
        publicPorts,
        diskOnly && next != SandboxState.RUNNING && next != SandboxState.PAUSED,
        node,
        createdAt,
        at,
        rev);
  }

  /// The same, about to be suspended with its memory or without.
  Sandbox saving(boolean diskAlone) {
    return new Sandbox(
        id,
        project,
        template,
        templateDigest,
        snapshotId,
        state,
        cause,
        resources,
        env,
        metadata,
        timeout,
        expiresAt,
        onTimeout,
        idleTimeout,
        autoWake,
        publicPorts,
        diskAlone,
        node,
        createdAt,
        stateChangedAt,
        rev);
  }

  Sandbox expiring(Optional<Duration> after, Optional<Instant> at, OnTimeout then) {
    return new Sandbox(
        id,
        project,
        template,
        templateDigest,
        snapshotId,
        state,
        cause,
        resources,
        env,
        metadata,
        after,
        at,
        then,
        idleTimeout,
        autoWake,
        publicPorts,
        diskOnly,
        node,
        createdAt,
        stateChangedAt,
        rev);
  }

  Sandbox expiring(Optional<Instant> at) {
    return expiring(timeout, at, onTimeout);
  }

  Sandbox described(
      Optional<Duration> idle, boolean wakes, Set<Integer> ports, Map<String, String> labels) {
    return new Sandbox(
        id,
        project,
        template,
        templateDigest,
        snapshotId,
        state,
        cause,
        resources,
        env,
        labels,
        timeout,
        expiresAt,
        onTimeout,
        idle,
        wakes,
        ports,
        diskOnly,
        node,
        createdAt,
        stateChangedAt,
        rev);
  }
}
