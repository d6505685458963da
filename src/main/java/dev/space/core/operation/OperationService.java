package dev.space.core.operation;

import dev.space.core.access.Caller;
import dev.space.core.store.Page;
import java.time.Duration;
import java.util.Optional;

/// Reading operations and waiting for them.
public final class OperationService {

  /// The operation, as soon as it is terminal or the wait is over (at most 60 s).
  public Operation get(Caller caller, String id, Duration wait) {
    throw new UnsupportedOperationException();
  }

  public Page<Operation> list(
      Caller caller, Optional<String> sandboxId, int limit, Optional<String> cursor) {
    throw new UnsupportedOperationException();
  }
}
