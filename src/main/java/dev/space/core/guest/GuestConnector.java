package dev.space.core.guest;

import dev.space.core.vm.Vm;
import java.time.Duration;

/// Opens guest links.
public interface GuestConnector {

  /// Dials the VM's agent, waits for it without polling slower than 10 ms, adopts the guest
  /// (identity, wall-clock time, fresh entropy, environment) and returns when that was answered.
  ///
  /// @param generation larger than that of every earlier link to this VM or its ancestors
  /// @throws dev.space.core.error.SpaceException GUEST_UNREACHABLE after the deadline, with the
  ///   tail of the console as its cause; SANDBOX_DIED when the VM ends meanwhile
  GuestLink connect(Vm vm, long generation, Guest.Adoption adoption, Duration deadline);

  /// Like `connect`, but only says Hello: for a guest that is to be frozen before anyone owns it.
  GuestLink greet(Vm vm, Duration deadline);
}
