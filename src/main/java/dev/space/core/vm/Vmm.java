package dev.space.core.vm;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;

/// A virtual machine monitor: makes VM processes and finds them again. The node that calls it owns
/// directories and disks; a driver owns processes, sockets and device state.
public interface Vmm {

  Isolation isolation();

  /// Version of the VMM and of its snapshot format; a snapshot is only restored by an equal one.
  String snapshotFormat();

  /// Names what new guests boot: another kernel or agent has another name. Base snapshots are made
  /// anew when it changes, while what was saved of older guests is still restored.
  String bootFingerprint();

  /// Boots a new guest; its memory is a file in the VM's directory, which [Vm#save] leaves as the
  /// full image. Returns when the process runs, long before the agent answers.
  Vm boot(VmSpec spec);

  /// Makes a VM from an image. It comes back paused; nothing of the guest has run.
  Vm restore(VmSpec spec, MemoryImage image);

  /// The VM that a former daemon left in this directory, if it is really that process and alive.
  ///
  /// @param deadline how long it may take to answer; one that doesn't is not adopted
  Optional<Vm> adopt(VmSpec spec, VmIdentity identity, Duration deadline);

  /// Every VM process of this monitor that works in a directory right below `root`, by that
  /// directory, whoever started it and whether or not a journal knows it: so that nothing can run
  /// without an owner after a crash between a process's start and its entry.
  Map<Path, VmIdentity> running(Path root);

  /// What the monitor counts since this daemon's start, by name, for the operator. Reads files:
  /// costs what they hold.
  default Map<String, Long> counters() {
    return Map.of();
  }

  /// Writes the whole memory of an image that has `changes` as one new file, sparse where it can
  /// be. What it makes serves as `memory` of an image without changes, with the same `state`.
  ///
  /// @param target doesn't exist yet; on failure nothing stays there
  void materialise(MemoryImage image, Path target);
}
