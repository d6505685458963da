package dev.space.host;

import dev.space.core.error.SpaceException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Looks at the machine: tools and their versions, the data directory, memory, disk, cgroups, KVM.
/// Whether KVM really runs a guest only the driver's own probe can tell.
public final class Prerequisites {

  /// A unix socket's path has 108 bytes with its final zero (unix(7)).
  private static final int SOCKET_PATH_BYTES_MAX = 107;

  /// The longest path below the data directory that becomes a socket.
  private static final String LONGEST_SOCKET = "/vms/" + "x".repeat(20) + "/agent.sock";

  private static final long DISK_BYTES_WARN = 10L << 30;
  private static final long DISK_BYTES_MIN = 2L << 30;
  private static final long MEMORY_KIB_WARN = 2L << 20;
  private static final long MEMORY_KIB_MIN = 512 << 10;
  private static final Path SLASH = Path.of("/");
  private static final Duration VERSION_MAX = Duration.ofSeconds(20);
  private static final Pattern VERSION = Pattern.compile("(\\d+)\\.(\\d+)(\\.\\d+)*");

  private final Processes processes;
  private final String qemu;
  private final Path data;
  private final Path root;
  private final Optional<Unprivileged> unprivileged;

  /// @param qemu the QEMU that is to run VMs: a name, or a path of the operator's own
  public Prerequisites(Processes processes, String qemu, Path data) {
    this(processes, qemu, data, SLASH, System.getProperty("user.name"));
  }

  /// @param root where `/dev`, `/etc`, `/proc` and `/sys` are looked for
  /// @param user whom the service runs as
  Prerequisites(Processes processes, String qemu, Path data, Path root, String user) {
    this.processes = processes;
    this.qemu = qemu;
    this.data = data.toAbsolutePath().normalize();
    this.root = root;
    this.unprivileged =
        "root".equals(user)
            ? Optional.empty()
            : Optional.of(new Unprivileged(processes, root, user));
  }

  /// A tool the service runs.
  private record Tool(
      String program, String debPackage, Optional<String> versionFlag, int major, int minor) {
    static Tool any(String program, String debPackage) {
      return new Tool(program, debPackage, Optional.empty(), 0, 0);
    }
  }

  private static final Tool QEMU =
      new Tool("qemu-system-x86_64", "qemu-system-x86", Optional.of("--version"), 7, 2);

  private static final List<Tool> TOOLS =
      List.of(
          new Tool("mke2fs", "e2fsprogs", Optional.of("-V"), 1, 46),
          new Tool("mmdebstrap", "mmdebstrap", Optional.of("--version"), 1, 2),
          Tool.any("apt-get", "apt"),
          Tool.any("dpkg-deb", "dpkg"),
          Tool.any("cp", "coreutils"),
          Tool.any("tar", "tar"),
          Tool.any("setpriv", "util-linux"));

  /// Everything, in the order in which people should read it.
  public List<Prerequisite> look() {
    List<Prerequisite> all = new ArrayList<>();
    all.add(qemu());
    TOOLS.forEach(tool -> all.add(look(tool)));
    unprivileged.ifPresent(
        some -> {
          all.add(look(Tool.any("newuidmap", "uidmap")));
          all.add(some.subordinateIds());
          all.add(some.userNamespaces());
        });
    all.add(dataDirectory());
    all.add(disk());
    all.add(memory());
    all.add(cgroup());
    all.add(kvm());
    return List.copyOf(all);
  }

  /// A QEMU of the operator's own is no package's: what is wrong with it is put right where it is
  /// named.
  private Prerequisite qemu() {
    if (qemu.equals(QEMU.program())) {
      return look(QEMU);
    }
    Prerequisite found =
        look(new Tool(qemu, QEMU.debPackage(), QEMU.versionFlag(), QEMU.major(), QEMU.minor()));
    return found.state() == Prerequisite.State.MISSING
        ? Prerequisite.missing(
            qemu,
            found.found(),
            "Let qemu.binary name a QEMU that is there, or leave it out to use Debian's.")
        : found;
  }

  private Prerequisite look(Tool tool) {
    Optional<Path> path = processes.find(tool.program());
    if (path.isEmpty()) {
      return Prerequisite.missingPackage(tool.program(), "not installed", tool.debPackage());
    }
    if (tool.versionFlag().isEmpty()) {
      return Prerequisite.ok(tool.program(), path.get().toString());
    }
    String said;
    try {
      said =
          String.join(
              " ",
              processes
                  .run(Command.of(VERSION_MAX, tool.program(), tool.versionFlag().orElseThrow()))
                  .tail());
    } catch (SpaceException e) {
      return Prerequisite.missingPackage(
          tool.program(), path.get() + " doesn't run: " + e.getMessage(), tool.debPackage());
    }
    Matcher version = VERSION.matcher(said);
    if (!version.find()) {
      return Prerequisite.warn(
          tool.program(), path.get() + " doesn't say its version", "Look at what it is.");
    }
    int major = Integer.parseInt(version.group(1));
    int minor = Integer.parseInt(version.group(2));
    if (major < tool.major() || major == tool.major() && minor < tool.minor()) {
      return Prerequisite.missingPackage(
          tool.program(),
          "version " + version.group() + ", needed is " + tool.major() + "." + tool.minor(),
          tool.debPackage());
    }
    return Prerequisite.ok(tool.program(), "version " + version.group());
  }

  private Prerequisite dataDirectory() {
    String name = "data directory";
    int socket = (data + LONGEST_SOCKET).getBytes(StandardCharsets.UTF_8).length;
    if (socket > SOCKET_PATH_BYTES_MAX) {
      return Prerequisite.missing(
          name,
          data + " is too long: sockets in it would have paths of " + socket + " bytes",
          "Choose a directory whose path is at least "
              + (socket - SOCKET_PATH_BYTES_MAX)
              + " bytes shorter (data_dir or --data-dir).");
    }
    Path existing = existing();
    if (!Files.isDirectory(existing) || !Files.isWritable(existing)) {
      return Prerequisite.missing(
          name,
          existing + " is not a writable directory",
          "Make it writable for this user or choose another (data_dir or --data-dir).");
    }
    return Prerequisite.ok(name, data.toString());
  }

  /// The data directory, or the nearest directory above it that is there.
  private Path existing() {
    for (int names = data.getNameCount(); names > 0; names--) {
      Path at = SLASH.resolve(data.subpath(0, names));
      if (Files.exists(at)) {
        return at;
      }
    }
    return SLASH;
  }

  private Prerequisite disk() {
    String name = "free disk";
    try {
      DiskSpace space = DiskSpace.of(existing());
      long free = space.freeBytes();
      String found = mib(free) + " of " + mib(space.totalBytes()) + " MiB free";
      String remedy = "Free space where " + data + " lies, or choose another directory.";
      if (free < DISK_BYTES_MIN) {
        return Prerequisite.missing(name, found, remedy);
      }
      return free < DISK_BYTES_WARN
          ? Prerequisite.warn(name, found, remedy)
          : Prerequisite.ok(name, found);
    } catch (IOException e) {
      return Prerequisite.warn(name, "unknown: " + e.getMessage(), "Look at " + data + ".");
    }
  }

  private Prerequisite memory() {
    String name = "free memory";
    try {
      for (String line : Files.readAllLines(root.resolve("proc/meminfo"))) {
        if (line.startsWith("MemAvailable:")) {
          long kib = Long.parseLong(line.replaceAll("[^0-9]", ""));
          String found = kib / 1024 + " MiB available";
          String remedy = "Each running sandbox needs some 40 MiB and what its programs use.";
          if (kib < MEMORY_KIB_MIN) {
            return Prerequisite.missing(name, found, remedy);
          }
          return kib < MEMORY_KIB_WARN
              ? Prerequisite.warn(name, found, remedy)
              : Prerequisite.ok(name, found);
        }
      }
    } catch (IOException | NumberFormatException _) {
      // Told below.
    }
    return Prerequisite.warn(name, "unknown", "Look at /proc/meminfo.");
  }

  private Prerequisite cgroup() {
    String name = "cgroup v2";
    Path controllers = root.resolve("sys/fs/cgroup/cgroup.controllers");
    if (Files.isReadable(controllers)) {
      try {
        String found = Files.readString(controllers).strip();
        if (found.contains("memory") && found.contains("cpu")) {
          return Prerequisite.ok(name, "controllers " + found);
        }
      } catch (IOException _) {
        // Told below, as for a host without it.
      }
    }
    return Prerequisite.warn(
        name,
        Files.isDirectory(root.resolve("sys/fs/cgroup/memory"))
            ? "version 1 only"
            : "not there, or without cpu and memory",
        "VMs run without their own cgroup; boot with systemd.unified_cgroup_hierarchy=1 to get it.");
  }

  private Prerequisite kvm() {
    String name = "/dev/kvm";
    Path device = root.resolve("dev/kvm");
    if (!Files.exists(device)) {
      return Prerequisite.warn(
          name,
          "not there: guests are emulated in software",
          "Enable virtualisation in the firmware or the cloud's machine type for speed.");
    }
    if (!Files.isReadable(device) || !Files.isWritable(device)) {
      return Prerequisite.warn(
          name, "there, but not for this user", "Add the user to the group kvm.");
    }
    return Prerequisite.ok(name, "there; the driver's probe tells whether it runs guests");
  }

  private static long mib(long bytes) {
    return bytes >> 20;
  }
}
