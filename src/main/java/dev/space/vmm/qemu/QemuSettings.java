package dev.space.vmm.qemu;

import dev.space.host.Cgroups;
import dev.space.host.UserIds;
import java.nio.file.Path;
import java.util.Optional;

/// What the QEMU driver needs to know.
///
/// @param binary name or path of `qemu-system-x86_64`
/// @param kernel bzImage of the guests
/// @param initramfs initramfs of the guests, with the agent as `/init`
/// @param acceleration what runs the guests' code
/// @param cache directory where the verdict on KVM is remembered
/// @param cgroups where VM processes get leaves of their own; empty on hosts without
/// @param users range of unprivileged user ids, one per VM; only for a daemon that runs as root
public record QemuSettings(
    String binary,
    Path kernel,
    Path initramfs,
    Acceleration acceleration,
    Path cache,
    Optional<UserIds.Range> users,
    Optional<Cgroups> cgroups) {

  /// Without cgroups.
  public QemuSettings(
      String binary,
      Path kernel,
      Path initramfs,
      Acceleration acceleration,
      Path cache,
      Optional<UserIds.Range> users) {
    this(binary, kernel, initramfs, acceleration, cache, users, Optional.empty());
  }

  /// What runs the guests' code.
  public enum Acceleration {
    /// KVM when a guest really boots with it, else software.
    AUTO,
    KVM,
    TCG
  }
}
