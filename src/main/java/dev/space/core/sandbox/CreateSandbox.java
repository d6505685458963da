package dev.space.core.sandbox;

import dev.space.core.template.TemplateRef;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;

/// A request for a new sandbox. Values that are absent come from the template.
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
    boolean autoWake) {

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
