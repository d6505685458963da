package dev.space.vmm.qemu;

import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// What QEMU tells unasked, for whoever waits for it.
final class Events {

  private @Nullable Consumer<String> shutdown;
  private @Nullable String shutdownReason;
  private @Nullable Runnable portClosed;
  private CompletableFuture<Boolean> migration = new CompletableFuture<>();
  private final CompletableFuture<Void> portOpened = new CompletableFuture<>();

  synchronized void take(Qmp.Event event) {
    switch (event.name()) {
      case "SHUTDOWN" -> {
        if (event.data().path("guest").asBoolean(false)) {
          shutdown(event.data().path("reason").asString("guest-shutdown"));
        }
      }
      case "MIGRATION" -> {
        switch (event.data().path("status").asString("")) {
          case "completed" -> migration.complete(true);
          case "failed", "cancelled" -> migration.complete(false);
          default -> {
            // Steps on the way.
          }
        }
      }
      case "VSERPORT_CHANGE" -> {
        if (event.data().path("open").asBoolean(false)) {
          portOpened.complete(null);
        } else if (portClosed != null) {
          portClosed.run();
        }
      }
      default -> {
        // QEMU tells much that nobody here waits for.
      }
    }
  }

  private void shutdown(String reason) {
    shutdownReason = reason;
    if (shutdown != null) {
      shutdown.accept(reason);
    }
  }

  /// Who is told that the guest ended; at once when it has.
  synchronized void onShutdown(Consumer<String> listener) {
    shutdown = listener;
    if (shutdownReason != null) {
      listener.accept(shutdownReason);
    }
  }

  /// Who is told each time that nothing in the guest has the agent's port open any more. The host's
  /// end of it stays open: nothing else tells.
  synchronized void onPortClosed(Runnable listener) {
    portClosed = listener;
  }

  /// Completes at the end of the next transfer of state, with whether it went well.
  synchronized CompletableFuture<Boolean> nextMigration() {
    migration = new CompletableFuture<>();
    return migration;
  }

  /// Completes when a program in the guest opened the agent's port.
  CompletableFuture<Void> portOpened() {
    return portOpened;
  }
}
