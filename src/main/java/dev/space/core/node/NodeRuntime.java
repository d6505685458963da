package dev.space.core.node;

import dev.space.core.guest.Guest;
import dev.space.core.vm.Isolation;
import dev.space.core.vm.VmExit;
import dev.space.core.vm.VmStats;
import java.util.Set;

/// The verbs of a host that runs VMs. Calls block; the caller serialises the calls for one sandbox,
/// but [#delete], which may come at any time, wins, and makes the call in flight fail. Every verb
/// either does its work or leaves things as they were and throws a `SpaceException`.
public interface NodeRuntime extends AutoCloseable {

  String name();

  Isolation isolation();

  Capacity capacity();

  /// Takes a warm VM or restores one; returns when the guest answered its adoption.
  ///
  /// @throws dev.space.core.error.SpaceException CAPACITY when memory, disk or the number of VMs
  ///   would go over the node's limits
  void create(LaunchSpec spec, Progress progress);

  /// Takes one line about the step at hand.
  @FunctionalInterface
  interface Progress {
    void report(String step);

    Progress NONE = step -> {};
  }

  void pause(String sandboxId);

  /// Makes a paused sandbox run again; returns when its guest answered.
  void resume(String sandboxId, LaunchSpec spec);

  /// Saves a running or paused sandbox and ends its VM. Fails with the VM as it was before.
  ///
  /// @param memory whether its memory is saved too; without it the guest writes all that is dirty
  ///   to its disk first, and a wake boots it
  void suspend(String sandboxId, boolean memory);

  /// Saves it with its memory.
  default void suspend(String sandboxId) {
    suspend(sandboxId, true);
  }

  /// Makes a suspended sandbox run again; the saved state is kept until its guest answered.
  ///
  /// @param memory whether to go on with the memory, if it was saved; otherwise the guest is booted
  ///   from its disk and the template's start command run
  void wake(String sandboxId, LaunchSpec spec, boolean memory);

  /// Goes on with whatever was saved.
  default void wake(String sandboxId, LaunchSpec spec) {
    wake(sandboxId, spec, true);
  }

  /// Saves memory and disk of a running or paused sandbox, which stays as it was.
  ///
  /// @return bytes the snapshot occupies
  long snapshot(String sandboxId, String snapshotId);

  void deleteSnapshot(String snapshotId);

  /// Ends the VM if there is one and removes all that the sandbox holds. Never wakes it. What is
  /// not there is no error.
  void delete(String sandboxId);

  /// The guest of a running sandbox.
  ///
  /// @throws dev.space.core.error.SpaceException ILLEGAL_STATE when it isn't running
  Guest guest(String sandboxId);

  VmStats stats(String sandboxId);

  /// Finds what a former daemon left: VMs that run or are paused are adopted, half-made things are
  /// removed. Called once, before anything else.
  ///
  /// @param known sandboxes that the store has and that are not over
  Recovered recover(Set<LaunchSpec> known);

  /// @param running adopted, guest answered
  /// @param paused adopted, not running
  /// @param suspended saved state is there and whole
  record Recovered(Set<String> running, Set<String> paused, Set<String> suspended) {}

  /// Makes the base snapshot of a template's default shape, so that creates need not.
  void prepare(String templateDigest, Progress progress);

  /// Removes a template's images and base snapshots.
  ///
  /// @throws dev.space.core.error.SpaceException CONFLICT while a sandbox or snapshot needs them
  void deleteTemplate(String templateDigest);

  /// Who is told of guests that ended by themselves. Set once, before `recover`.
  void onExit(ExitListener listener);

  @FunctionalInterface
  interface ExitListener {
    void exited(String sandboxId, VmExit exit);
  }

  /// Lets go of everything without ending a VM: the next daemon adopts them.
  @Override
  void close();
}
