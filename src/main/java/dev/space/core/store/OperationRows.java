package dev.space.core.store;

import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationKind;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// Operations with their intent: what has to be known to finish one or to undo it after a crash.
public interface OperationRows {

  Operation insert(Operation operation, Map<String, String> intent);

  Operation update(Operation operation);

  /// Replaces the intent.
  void intend(String id, Map<String, String> intent);

  Optional<Operation> find(String id);

  /// The operation if it is this project's.
  Optional<Operation> find(String project, String id);

  /// What [#insert] or [#intend] recorded; empty for an unknown id.
  Map<String, String> intent(String id);

  Page<Operation> list(
      String project, Optional<String> sandboxId, int limit, Optional<String> cursor);

  /// What is pending or running, oldest first, of all projects.
  List<Operation> open();

  /// What is pending or running for a sandbox, oldest first.
  List<Operation> open(String sandboxId);

  /// The newest operation of a kind on a sandbox.
  Optional<Operation> latest(String sandboxId, OperationKind kind);

  /// Forgets terminal operations that ended earlier and says how many.
  int purgeEndedBefore(Instant instant);
}
