package dev.space.node;

import dev.space.core.template.Resources;
import dev.space.core.vm.VmIdentity;
import java.util.Optional;

/// What a VM directory is for: its journal entry, `vm.json`. It is written before what it says is
/// done, so that after a crash it names all that may exist.
///
/// @param version of this format
/// @param id name of the directory
/// @param owner the sandbox it belongs to; empty for base and warm VMs
/// @param origin what its memory comes from, and which must stay as long as this entry does
/// @param identity of the VM process; empty as long as there is none, or it isn't known yet
/// @param generation of the guest's last adoption, or of the one under way
/// @param wasPaused in `SUSPENDING`: where a failure leads back to
/// @param diskKept in `WAKING`: whether `saved/disk.img` holds the disk as it was saved
/// @param format the driver's snapshot format that all of it is in
record VmEntry(
    int version,
    String id,
    State state,
    Optional<String> owner,
    Origin origin,
    Resources resources,
    Optional<VmIdentity> identity,
    long generation,
    boolean wasPaused,
    boolean diskKept,
    String format) {

  static final int VERSION = 1;

  enum State {
    /// A template is booted to make its base snapshot.
    BASE,
    /// Restored and idle, waiting for an owner.
    WARM,
    CREATING,
    RUNNING,
    PAUSED,
    SUSPENDING,
    SUSPENDED,
    WAKING,
    /// The VM ended by itself; what it left is kept until it is deleted.
    ENDED,
    DELETING
  }

  /// Where memory comes from.
  ///
  /// @param kind of the folder: a base snapshot, a snapshot of a sandbox, or a VM directory's own,
  ///   which holds the memory as it was right after the guest was booted from the sandbox's disk
  /// @param name of the folder
  /// @param template digest of the template whose root image is `vda`
  record Origin(Kind kind, String name, String template) {
    enum Kind {
      BASE,
      SNAPSHOT,
      OWN
    }
  }

  VmEntry in(State next) {
    return with(next, owner, identity, generation, wasPaused, diskKept);
  }

  /// The entry of a guest that was booted anew.
  VmEntry bootedAs(Origin own, String snapshotFormat) {
    return new VmEntry(
        version,
        id,
        state,
        owner,
        own,
        resources,
        identity,
        generation,
        wasPaused,
        diskKept,
        snapshotFormat);
  }

  VmEntry ownedBy(String sandboxId) {
    return with(state, Optional.of(sandboxId), identity, generation, wasPaused, diskKept);
  }

  VmEntry running(VmIdentity process) {
    return with(state, owner, Optional.of(process), generation, wasPaused, diskKept);
  }

  VmEntry withoutVm() {
    return with(state, owner, Optional.empty(), generation, false, false);
  }

  VmEntry nextGeneration() {
    return with(state, owner, identity, generation + 1, wasPaused, diskKept);
  }

  VmEntry wasPaused(boolean paused) {
    return with(state, owner, identity, generation, paused, diskKept);
  }

  VmEntry diskKept(boolean kept) {
    return with(state, owner, identity, generation, wasPaused, kept);
  }

  /// The same VM with what changes in its life.
  private VmEntry with(
      State state,
      Optional<String> owner,
      Optional<VmIdentity> identity,
      long generation,
      boolean wasPaused,
      boolean diskKept) {
    return new VmEntry(
        version,
        id,
        state,
        owner,
        origin,
        resources,
        identity,
        generation,
        wasPaused,
        diskKept,
        format);
  }
}
