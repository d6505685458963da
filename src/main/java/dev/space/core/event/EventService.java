package dev.space.core.event;

import dev.space.core.access.Caller;
import java.util.function.Consumer;

/// Lifecycle events, kept for a while and told to subscribers.
public final class EventService {

  /// Gives every event after `afterSeq` to the sink until the calling thread is interrupted; -1
  /// means from now on.
  public void follow(Caller caller, long afterSeq, Consumer<LifecycleEvent> sink) {
    throw new UnsupportedOperationException();
  }
}
