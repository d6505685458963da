package dev.space.core.sandbox;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.operation.Entry;
import dev.space.core.operation.Lanes;
import dev.space.core.operation.Ledger;
import dev.space.core.vm.VmExit;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Records guests that ended by themselves.
final class GuestExits {

  private static final Logger LOG = LoggerFactory.getLogger(GuestExits.class);

  private final Ledger ledger;
  private final Lanes lanes;
  private final NodeWork nodes;
  private final SandboxMoves moves;

  GuestExits(Ledger ledger, Lanes lanes, NodeWork nodes, SandboxMoves moves) {
    this.ledger = ledger;
    this.lanes = lanes;
    this.nodes = nodes;
    this.moves = moves;
  }

  /// The node's listener; returns at once.
  void exited(String sandboxId, VmExit exit) {
    switch (exit.kind()) {
      case KILLED -> {}
      case STOPPED, PANICKED, VMM_DIED ->
          Thread.ofVirtual().name("exit-" + sandboxId).start(() -> take(sandboxId, exit));
    }
  }

  private void take(String sandboxId, VmExit exit) {
    try {
      boolean recorded = ledger.<Boolean>persist(entry -> record(entry, sandboxId, exit));
      if (!recorded) {
        // A wake is under way. If it failed, this was why, and the saved state is whole; if it is
        // just about to succeed, the guest died right after.
        lanes.submit(sandboxId, job -> recheck(sandboxId, exit));
      }
    } catch (SpaceException e) {
      LOG.info("the exit of {} is left for the next start: {}", sandboxId, e.getMessage());
    }
  }

  /// @return false when it can't be told yet what the exit means
  private boolean record(Entry entry, String sandboxId, VmExit exit) {
    Optional<Sandbox> found = entry.tx().sandboxes().find(sandboxId);
    if (found.isEmpty()) {
      return true;
    }
    Sandbox s = found.get();
    return switch (s.state()) {
      case WAKING -> false;
      case SUSPENDED, STOPPED, FAILED, DELETING, DELETED -> true;
      case CREATING, RUNNING, PAUSING, PAUSED, RESUMING, SUSPENDING -> {
        moves.move(entry, s, event(exit), Optional.of(cause(exit)), Optional.empty());
        yield true;
      }
    };
  }

  private void recheck(String sandboxId, VmExit exit) {
    boolean gone;
    try {
      nodes.node().guest(sandboxId);
      gone = false;
    } catch (SpaceException e) {
      gone = true;
    }
    if (gone) {
      ledger.persist(
          entry ->
              entry
                  .tx()
                  .sandboxes()
                  .find(sandboxId)
                  .filter(s -> s.state() == SandboxState.RUNNING)
                  .map(
                      s ->
                          moves.move(
                              entry, s, event(exit), Optional.of(cause(exit)), Optional.empty())));
    }
  }

  private static SandboxEvent event(VmExit exit) {
    return exit.kind() == VmExit.Kind.STOPPED
        ? SandboxEvent.GUEST_STOPPED
        : SandboxEvent.GUEST_FAILED;
  }

  private static Problem cause(VmExit exit) {
    String what =
        switch (exit.kind()) {
          case STOPPED -> "the guest powered itself off";
          case PANICKED -> "the guest's kernel panicked";
          case VMM_DIED -> "the sandbox's VM process ended";
          case KILLED -> "the host ended the VM";
        };
    return Problem.of(ErrorCode.SANDBOX_DIED, what).because(exit.detail());
  }
}
