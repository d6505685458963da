package dev.space.core.store;

import dev.space.core.event.LifecycleEvent;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// Lifecycle events, numbered in the order in which their transactions are committed.
public interface EventRows {

  LifecycleEvent append(
      String project,
      Instant at,
      String type,
      Optional<String> sandboxId,
      Optional<String> operationId,
      Map<String, String> data);

  /// A project's events after a number, oldest first.
  List<LifecycleEvent> after(String project, long seq, int limit);

  /// The newest number of any project; 0 when nothing ever happened.
  long last();

  /// Forgets all but the newest `keep` numbers.
  void trim(long keep);
}
