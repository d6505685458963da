package dev.space.app;

import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/// Everything that can be configured, validated. Read by [ConfigReader] from one YAML file, the
/// environment (`SPACE_…`) and flags, later ones winning; `docs/configuration.md` lists the keys.
///
/// @param dataDir everything the service keeps
/// @param listen control plane
/// @param dataListen data plane
/// @param dataUrl how callers reach the data plane; empty means the host they called and the port
///   of `dataListen`
/// @param portDomain domain below which `{port}-{id}` names a port of a sandbox
/// @param e2b the listener for E2B's SDKs
/// @param vmm which driver
/// @param warm how many idle VMs to keep ready, per template
/// @param onStop what becomes of running sandboxes when the daemon is stopped
public record SpaceConfig(
    Path dataDir,
    InetSocketAddress listen,
    InetSocketAddress dataListen,
    Optional<String> dataUrl,
    Optional<String> portDomain,
    E2b e2b,
    VmmChoice vmm,
    Qemu qemu,
    Firecracker firecracker,
    Boot boot,
    Limits limits,
    Sessions sessions,
    List<Warm> warm,
    OnStop onStop) {

  /// @param listen where E2B's SDKs are served; empty means nowhere
  /// @param domain what their `getHost` puts behind `{port}-{id}.`, a port included
  /// @param tls where they are served with TLS; empty means nowhere
  public record E2b(
      Optional<InetSocketAddress> listen, Optional<String> domain, Optional<E2bTls> tls) {

    public static final E2b OFF = new E2b(Optional.empty(), Optional.empty(), Optional.empty());
  }

  /// @param certificate PEM, with those between it and its authority
  /// @param key PEM, PKCS #8 without a password
  public record E2bTls(InetSocketAddress listen, Path certificate, Path key) {}

  /// `auto` starts a real guest to find out what works here.
  public enum VmmChoice {
    AUTO,
    QEMU,
    FIRECRACKER,
    SIMULATED
  }

  /// @param accelerator `auto`, `kvm` or `tcg`
  /// @param uidBase first of the unprivileged user ids that VM processes run as when the daemon is
  ///   root
  public record Qemu(String binary, String accelerator, int uidBase) {}

  /// @param jailer what keeps each process from the host; empty means nothing, for development
  /// @param uidBase first of the user ids that jailed processes run as
  /// @param callSeconds how long a call that sets something up may take
  /// @param diskOps requests a second to each disk of a VM; 0 means as many as the host does
  /// @param diskBytes bytes a second, likewise
  public record Firecracker(
      String binary,
      Optional<String> jailer,
      int uidBase,
      int callSeconds,
      long diskOps,
      long diskBytes) {}

  /// @param kernel a bzImage of the operator's own, with its modules; empty means Debian's
  /// @param agent the guest agent's binary
  public record Boot(Optional<Path> kernel, Optional<Path> modules, Path agent) {}

  /// @param vmsMax VMs on this node, warm ones included
  /// @param memoryMib memory that may be promised to guests; 0 means what the host has
  /// @param memoryOvercommit how many times that may be promised
  /// @param diskReserveMib free space below which nothing new is made
  public record Limits(int vmsMax, long memoryMib, double memoryOvercommit, long diskReserveMib) {}

  /// @param logBytesMax output kept per session
  /// @param tokenSeconds how long an attachment token is good
  public record Sessions(long logBytesMax, int tokenSeconds) {}

  public record Warm(String template, int count) {}

  public enum OnStop {
    KEEP,
    SUSPEND
  }
}
