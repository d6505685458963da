package dev.space.vmm.firecracker;

import dev.space.host.Cgroups;
import dev.space.host.UserIds;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;

/// What the Firecracker driver needs to know.
///
/// @param binary name or path of `firecracker`
/// @param jail what stands around each process
/// @param kernel uncompressed kernel of the guests
/// @param initramfs initramfs of the guests, with the agent as `/init`
/// @param call how long a call that sets something up may take; calls that move guests or their
///   memory get more
/// @param diskRate what a guest may do to each of its disks
/// @param cgroups where VM processes get leaves of their own; empty on hosts without
public record FirecrackerSettings(
    String binary,
    Jail jail,
    Path kernel,
    Path initramfs,
    Duration call,
    DiskRate diskRate,
    Optional<Cgroups> cgroups) {

  /// How long a configuration call may take where nothing else is said.
  public static final Duration CALL = Duration.ofSeconds(10);

  /// What keeps a process that a guest took over from the host, beside Firecracker's own seccomp
  /// filters.
  public sealed interface Jail {

    /// Nothing: the process runs as who the daemon runs as. For development alone.
    record None() implements Jail {}

    /// Firecracker's jailer: a root of its own with only the VM's files in it, a user id, a process
    /// id namespace and a network namespace of its own. The daemon must be root.
    ///
    /// @param binary name or path of `jailer`, of the same release
    record Jailer(String binary, UserIds.Range users) implements Jail {}
  }

  /// Bounds for one disk; 0 means none.
  ///
  /// @param opsPerSecond requests
  /// @param bytesPerSecond bytes read and written
  public record DiskRate(long opsPerSecond, long bytesPerSecond) {

    public static final DiskRate NONE = new DiskRate(0, 0);

    boolean bounded() {
      return opsPerSecond > 0 || bytesPerSecond > 0;
    }
  }
}
