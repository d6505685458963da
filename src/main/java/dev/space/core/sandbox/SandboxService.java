package dev.space.core.sandbox;

import dev.space.core.access.Caller;
import dev.space.core.guest.Guest;
import dev.space.core.operation.IdempotencyKey;
import dev.space.core.operation.Operation;
import dev.space.core.store.Page;
import java.util.Optional;

/// The life of sandboxes. Every change is an operation: recorded with its intent in one
/// transaction, answered at once, worked on in the sandbox's lane.
public final class SandboxService {

  public Operation create(Caller caller, CreateSandbox request, Optional<IdempotencyKey> key) {
    throw new UnsupportedOperationException();
  }

  public Operation pause(Caller caller, String id, Optional<IdempotencyKey> key) {
    throw new UnsupportedOperationException();
  }

  public Operation suspend(Caller caller, String id, Optional<IdempotencyKey> key) {
    throw new UnsupportedOperationException();
  }

  public Operation wake(Caller caller, String id, Optional<IdempotencyKey> key) {
    throw new UnsupportedOperationException();
  }

  /// Makes `count` (1 to 100) running copies; their ids are the operation's results.
  public Operation fork(Caller caller, String id, int count, Optional<IdempotencyKey> key) {
    throw new UnsupportedOperationException();
  }

  public Operation snapshot(
      Caller caller, String id, Optional<String> name, Optional<IdempotencyKey> key) {
    throw new UnsupportedOperationException();
  }

  /// Deletes for good. Deleting what was deleted answers the first delete's operation.
  public Operation delete(Caller caller, String id, Optional<IdempotencyKey> key) {
    throw new UnsupportedOperationException();
  }

  public Sandbox get(Caller caller, String id) {
    throw new UnsupportedOperationException();
  }

  public Page<Sandbox> list(Caller caller, SandboxQuery query) {
    throw new UnsupportedOperationException();
  }

  public Sandbox update(Caller caller, String id, UpdateSandbox change) {
    throw new UnsupportedOperationException();
  }

  /// Opens a use of a sandbox: it is not idle until the use is closed. Wakes it first when it
  /// sleeps and has `autoWake`.
  ///
  /// @throws dev.space.core.error.SpaceException ILLEGAL_STATE when it doesn't run and isn't woken
  public Use use(Caller caller, String id) {
    throw new UnsupportedOperationException();
  }

  /// A sandbox in use.
  public interface Use extends AutoCloseable {
    Sandbox sandbox();

    Guest guest();

    @Override
    void close();
  }
}
