package dev.space.core.sandbox;

import dev.space.core.template.TemplateRef;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// A request for a new sandbox. Values that are absent come from the template.
///
/// @param publicPorts ports that are reached without a key or token; all others are private
public record CreateSandbox(
    Source source,
    Optional<Integer> vcpus,
    Optional<Integer> memoryMib,
    Optional<Integer> diskMib,
    Map<String, String> env,
    Map<String, String> metadata,
    Optional<Duration> timeout,
    OnTimeout onTimeout,
    Optional<Duration> idleTimeout,
    boolean autoWake,
    Set<Integer> publicPorts) {

  /// One whose ports are all private.
  public CreateSandbox(
      Source source,
      Optional<Integer> vcpus,
      Optional<Integer> memoryMib,
      Optional<Integer> diskMib,
      Map<String, String> env,
      Map<String, String> metadata,
      Optional<Duration> timeout,
      OnTimeout onTimeout,
      Optional<Duration> idleTimeout,
      boolean autoWake) {
    this(
        source,
        vcpus,
        memoryMib,
        diskMib,
        env,
        metadata,
        timeout,
        onTimeout,
        idleTimeout,
        autoWake,
        Set.of());
  }

  /// What a sandbox is made from.
  public sealed interface Source {
    record FromTemplate(TemplateRef ref) implements Source {}

    record FromSnapshot(String snapshotId) implements Source {}
  }

  /// A sandbox of a template with nothing else asked for: no timeout, no idle timeout.
  public static CreateSandbox of(TemplateRef ref) {
    return new CreateSandbox(
        new Source.FromTemplate(ref),
        Optional.empty(),
        Optional.empty(),
        Optional.empty(),
        Map.of(),
        Map.of(),
        Optional.empty(),
        OnTimeout.DELETE,
        Optional.empty(),
        false);
  }
}
