package dev.space.core.guest;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/// An open connection to a guest's agent.
public interface GuestLink extends Guest, AutoCloseable {

  /// That of the last adoption; 0 when the guest was only greeted.
  long generation();

  /// Adopts the guest over this link once more: an idle VM gets its owner without a new connection.
  ///
  /// @param generation larger than that of every earlier adoption
  /// @throws dev.space.core.error.SpaceException GUEST_UNREACHABLE after the deadline
  void adopt(long generation, Guest.Adoption adoption, Duration deadline);

  /// Completes when the link is gone, whether closed here, by the guest, or with the VM.
  CompletableFuture<Void> closed();

  /// Ends the link; calls in flight fail with GUEST_UNREACHABLE. Processes go on.
  @Override
  void close();
}
