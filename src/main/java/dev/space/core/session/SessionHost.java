package dev.space.core.session;

import dev.space.core.access.Caller;
import dev.space.core.guest.Guest;
import dev.space.core.sandbox.Sandbox;
import dev.space.core.sandbox.SandboxService;
import java.util.Optional;

/// What sessions need of the sandboxes they run in.
public interface SessionHost {

  /// The sandbox as its caller may see it.
  ///
  /// @throws dev.space.core.error.SpaceException SANDBOX_NOT_FOUND
  Sandbox get(Caller caller, String sandboxId);

  /// See [SandboxService#use].
  SandboxService.Use use(Caller caller, String sandboxId);

  /// The guest of a sandbox that runs; never wakes it.
  ///
  /// @throws dev.space.core.error.SpaceException ILLEGAL_STATE when it doesn't run
  Guest guest(String sandboxId);

  /// The sandbox whoever it belongs to, tombstones left out; for recovery.
  Optional<Sandbox> find(String sandboxId);
}
