package dev.space.core.guest;

import java.util.concurrent.CompletableFuture;

/// An open connection to a guest's agent.
public interface GuestLink extends Guest, AutoCloseable {

  long generation();

  /// Completes when the link is gone, whether closed here, by the guest, or with the VM.
  CompletableFuture<Void> closed();

  /// Ends the link; calls in flight fail with GUEST_UNREACHABLE. Processes go on.
  @Override
  void close();
}
