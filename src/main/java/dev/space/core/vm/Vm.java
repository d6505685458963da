package dev.space.core.vm;

import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/// One VM process. Calls block and are made one at a time, but [#dial], [#kill] and [#exit], which
/// may come from any thread. Failures are `SpaceException`s with `VMM_FAILED`.
public interface Vm {

  VmSpec spec();

  VmIdentity identity();

  /// Stops the vCPUs. Memory stays. Pausing what is paused does nothing.
  void pause();

  /// Lets the vCPUs run. Resuming what runs does nothing.
  void resume();

  /// Saves device state and memory of a paused VM, which stays paused. Disks are the caller's, to
  /// be copied before the VM runs again. Streams that are open to its agent end with it.
  ///
  /// @param state file to write the device state to
  /// @param memory what to save of the memory, and where
  void save(Path state, MemoryTarget memory);

  /// What to save of the memory.
  sealed interface MemoryTarget {
    /// All of it.
    record Full(Path file) implements MemoryTarget {}

    /// Only pages that differ from the image the VM was restored from. Drivers that can't tell
    /// write a change file that holds all pages.
    record Changes(Path file) implements MemoryTarget {}
  }

  /// A new byte stream to the agent's port; the driver's handshake, if it has one, is done. Under
  /// QEMU there is one at a time: close the old one first.
  SocketChannel dial();

  /// How long a stream that [#dial] gave may stay silent before another is tried. Without bound
  /// where a stream is there before the guest has its end of it, and waits for that.
  default Duration patience() {
    return Duration.ofDays(1);
  }

  VmStats stats();

  /// Ends the process at once and waits until it is gone. Does nothing when it is.
  void kill();

  /// Lets go of the process without ending it, as the end of the daemon does: from now on another
  /// daemon, in this process or in the next, may adopt it, and [#exit] tells nothing but a [#kill].
  /// A driver that holds no connection of its own has nothing to do.
  default void forget() {}

  /// Completes when the process is gone, whatever the reason.
  CompletableFuture<VmExit> exit();

  /// The last bytes the guest wrote to its console, made printable.
  String consoleTail();
}
