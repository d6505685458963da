package dev.space.host;

import static dev.space.host.Prerequisite.missing;
import static dev.space.host.Prerequisite.ok;
import static dev.space.host.Prerequisite.warn;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

/// What a host needs before guests of people who distrust each other may share it: the points of
/// docs/firecracker-host.md, in its order. MISSING is a way out of a guest, or keeps Firecracker
/// from running; WARN costs speed, or only people can judge it.
public final class ProductionHost {

  /// What the points depend on that isn't in the kernel's files.
  ///
  /// @param root whether the service has root's rights, which the jailer needs
  /// @param uidBase first user id of VM processes
  /// @param vmsMax how many ids and processes there may be
  /// @param data the data directory
  public record Service(boolean root, int uidBase, int vmsMax, Path data) {}

  /// Kernels that Firecracker is tested on.
  private static final Set<Integer> TESTED =
      Set.of(HostFiles.kernel(5, 10), HostFiles.kernel(6, 1), HostFiles.kernel(6, 18));

  private static final int KERNEL_MIN = HostFiles.kernel(5, 10);
  private static final int KILLS_CGROUPS = HostFiles.kernel(5, 14);
  private static final int SLOW_CGROUPS = HostFiles.kernel(6, 1);

  private static final List<String> CONTROLLERS = List.of("cpu", "memory", "pids", "io");

  /// Threads of one VM: its vCPUs, Firecracker's own two, the jailer for a moment.
  private static final int THREADS_PER_VM = 8;

  /// Files that one VM keeps open.
  private static final int FILES_PER_VM = 64;

  private static final long TIMER_MICROS_MIN = 200;

  /// A unix socket's path has 108 bytes with its final zero (unix(7)).
  private static final int SOCKET_PATH_BYTES_MAX = 107;

  /// The longest path of a jail's socket below the data directory.
  private static final String LONGEST_SOCKET =
      "/vms/" + "x".repeat(20) + "/fc/firecracker/" + "x".repeat(20) + "/root/api.sock";

  private static final String CPU = "sys/devices/system/cpu/";

  private final HostFiles files;
  private final Service service;

  public ProductionHost(Service service) {
    this(service, Path.of("/"));
  }

  /// @param root where `/dev`, `/etc`, `/proc` and `/sys` are looked for
  ProductionHost(Service service, Path root) {
    this.files = new HostFiles(root);
    this.service = service;
  }

  /// Every point. Whether KVM really runs a guest only a driver's own probe can tell.
  public List<Prerequisite> look() {
    return List.of(
        kernel(),
        hardware(),
        kvm(),
        smt(),
        mitigations(),
        microcode(),
        ksm(),
        swap(),
        memoryErrors(),
        randomisation(),
        seccomp(),
        cgroups(),
        cgroupSpeed(),
        hugePageSplitting(),
        guestTimers(),
        jailer(),
        userRange(),
        limits(),
        overcommit(),
        hugePages(),
        socketPaths(),
        reflinks(),
        console(),
        cpuModel());
  }

  private Prerequisite kernel() {
    String name = "host kernel";
    String found = files.text("proc/sys/kernel/osrelease").orElse("unknown");
    int version = files.kernel();
    String remedy = "Run Linux 6.1 or 6.18, which Firecracker is tested on.";
    if (version < KERNEL_MIN) {
      return missing(name, found, remedy);
    }
    return TESTED.contains(version) ? ok(name, found) : warn(name, found, remedy);
  }

  private Prerequisite hardware() {
    String name = "hardware";
    boolean guest =
        files.cpu("flags").map(flags -> List.of(flags.split(" "))).orElse(List.of()).stream()
            .anyMatch("hypervisor"::equals);
    return guest
        ? warn(
            name,
            "this host is itself a virtual machine",
            "Use bare metal: Firecracker's makers support nothing else in production, and guests of a"
                + " nested host run slower.")
        : ok(name, "no hypervisor below");
  }

  private Prerequisite kvm() {
    String name = "/dev/kvm";
    if (!files.exists("dev/kvm")) {
      return missing(
          name,
          "not there",
          "Enable virtualisation in the firmware and load the module kvm_intel or kvm_amd.");
    }
    return files.mayUse("dev/kvm")
        ? ok(name, "there; 'kvm guest' below tells whether it runs one")
        : missing(name, "there, but not for this user", "Run the service as root.");
  }

  private Prerequisite smt() {
    String name = "smt";
    return switch (files.text(CPU + "smt/active").orElse("")) {
      case "0" -> ok(name, "off: " + files.text(CPU + "smt/control").orElse("one thread per core"));
      case "1" ->
          missing(
              name,
              "on: two guests may share a core and what it leaks",
              "Boot with nosmt, or: echo off > /sys/devices/system/cpu/smt/control");
      default -> warn(name, "unknown", "Look at /sys/devices/system/cpu/smt.");
    };
  }

  private Prerequisite mitigations() {
    String name = "cpu vulnerabilities";
    String directory = CPU + "vulnerabilities";
    List<String> all = files.names(directory);
    if (all.isEmpty()) {
      return warn(name, "the kernel doesn't tell", "Run spectre-meltdown-checker.");
    }
    List<String> open = new ArrayList<>();
    List<String> onlySmt = new ArrayList<>();
    for (String one : all) {
      String says = files.text(directory + "/" + one).orElse("unknown");
      if (says.startsWith("Vulnerable") || says.contains("KVM: Vulnerable")) {
        open.add(one);
      } else if (says.contains("SMT vulnerable")) {
        onlySmt.add(one);
      }
    }
    boolean off =
        files.text("proc/cmdline").map(line -> List.of(line.split(" "))).orElse(List.of()).stream()
            .anyMatch("mitigations=off"::equals);
    if (off || !open.isEmpty()) {
      return missing(
          name,
          (off ? "mitigations=off; " : "")
              + (open.isEmpty() ? "" : "open: " + String.join(", ", open)),
          "Boot without mitigations=off, with the newest kernel and microcode; check with"
              + " spectre-meltdown-checker.");
    }
    return onlySmt.isEmpty()
        ? ok(name, all.size() + " known, none open")
        : warn(name, "open with SMT: " + String.join(", ", onlySmt), "Boot with nosmt.");
  }

  private Prerequisite microcode() {
    String name = "microcode";
    return files
        .cpu("microcode")
        .map(revision -> ok(name, revision + "; only its maker's list tells whether it is current"))
        .orElseGet(
            () ->
                warn(
                    name,
                    "revision not told",
                    "Install intel-microcode or amd64-microcode and boot again."));
  }

  private Prerequisite ksm() {
    String name = "ksm";
    return switch (files.text("sys/kernel/mm/ksm/run").orElse("0")) {
      case "0", "2" -> ok(name, "off");
      default ->
          missing(
              name,
              "on: how long a write takes tells a guest what others have in memory",
              "echo 2 > /sys/kernel/mm/ksm/run, and turn ksmtuned off.");
    };
  }

  private Prerequisite swap() {
    String name = "swap";
    List<String> areas = files.lines("proc/swaps").stream().skip(1).toList();
    return areas.isEmpty()
        ? ok(name, "none")
        : missing(
            name,
            areas.size() + " areas: memory of guests gets onto disks and stays there",
            "swapoff -a, and take swap out of /etc/fstab.");
  }

  private Prerequisite memoryErrors() {
    String name = "ecc memory";
    long controllers =
        files.names("sys/devices/system/edac/mc").stream().filter(n -> n.startsWith("mc")).count();
    return controllers > 0
        ? ok(name, controllers + " controllers report errors")
        : warn(
            name,
            "no memory controller reports errors",
            "Use ECC memory that withstands Rowhammer, and load its EDAC driver.");
  }

  private Prerequisite randomisation() {
    String name = "address randomisation";
    String found = files.text("proc/sys/kernel/randomize_va_space").orElse("unknown");
    return found.equals("2")
        ? ok(name, "full")
        : missing(
            name, "kernel.randomize_va_space is " + found, "sysctl kernel.randomize_va_space=2");
  }

  private Prerequisite seccomp() {
    String name = "seccomp";
    String found = files.text("proc/sys/kernel/seccomp/actions_avail").orElse("");
    List<String> actions = List.of(found.split(" "));
    return actions.contains("trap") && actions.contains("kill_process")
        ? ok(name, found)
        : missing(
            name,
            found.isEmpty() ? "not in this kernel" : found,
            "Use a kernel with CONFIG_SECCOMP_FILTER: Firecracker's filters are the inner wall.");
  }

  private Prerequisite cgroups() {
    String name = "cgroup v2";
    List<String> there =
        List.of(files.text("sys/fs/cgroup/cgroup.controllers").orElse("").split(" "));
    List<String> lacking = CONTROLLERS.stream().filter(c -> !there.contains(c)).toList();
    if (!lacking.isEmpty()) {
      return missing(
          name,
          "without " + String.join(", ", lacking),
          "Boot with systemd.unified_cgroup_hierarchy=1 (and cgroup_no_v1=all): memory.max is the only"
              + " bound that a guest can't ignore, as it can the balloon.");
    }
    return files.kernel() < KILLS_CGROUPS
        ? warn(name, "without cgroup.kill: VMs are killed by pid", "Run Linux 5.14 or newer.")
        : ok(name, "controllers " + String.join(" ", there));
  }

  private Prerequisite cgroupSpeed() {
    String name = "cgroup favordynmods";
    boolean there =
        files.lines("proc/mounts").stream()
            .map(line -> line.split(" "))
            .anyMatch(w -> w.length > 3 && w[2].equals("cgroup2") && w[3].contains("favordynmods"));
    return there || files.kernel() < SLOW_CGROUPS
        ? ok(name, there ? "set" : "not needed by this kernel")
        : warn(
            name,
            "not set: a VM's start waits for the kernel",
            "mount -o remount,favordynmods /sys/fs/cgroup");
  }

  private Prerequisite hugePageSplitting() {
    String name = "kvm nx_huge_pages";
    Optional<String> set = files.text("sys/module/kvm/parameters/nx_huge_pages");
    boolean unaffected =
        files.text(CPU + "vulnerabilities/itlb_multihit").orElse("").startsWith("Not affected");
    if (set.isEmpty()) {
      return ok(name, "not in this kernel");
    }
    return unaffected && files.kernel() >= SLOW_CGROUPS && !set.get().equals("never")
        ? warn(
            name,
            set.get() + ", though this processor doesn't need it",
            "Boot with kvm.nx_huge_pages=never: guests start faster.")
        : ok(name, set.get());
  }

  private Prerequisite guestTimers() {
    String name = "kvm min_timer_period_us";
    Optional<Long> set = files.number("sys/module/kvm/parameters/min_timer_period_us");
    if (set.isEmpty()) {
      return ok(name, "not in this kernel");
    }
    return set.get() >= TIMER_MICROS_MIN
        ? ok(name, set.get() + " µs")
        : warn(
            name,
            set.get() + " µs: a guest can flood its host with timers",
            "echo " + TIMER_MICROS_MIN + " > /sys/module/kvm/parameters/min_timer_period_us");
  }

  private Prerequisite jailer() {
    String name = "jailer rights";
    return service.root()
        ? ok(name, "root, given up by every VM process")
        : missing(
            name,
            "this user can't make jails",
            "Run the service as root: the jailer changes root, user, cgroup and namespaces.");
  }

  private Prerequisite userRange() {
    String name = "jailer user range";
    long first = service.uidBase();
    long last = first + service.vmsMax() - 1;
    Set<String> taken = new TreeSet<>();
    for (String line : files.lines("etc/passwd")) {
      String[] fields = line.split(":");
      if (fields.length > 2 && fields[2].matches("\\d{1,10}")) {
        long uid = Long.parseLong(fields[2]);
        if (uid >= first && uid <= last) {
          taken.add(fields[0] + " in /etc/passwd");
        }
      }
    }
    for (String line : files.lines("etc/subuid")) {
      String[] fields = line.split(":");
      if (fields.length == 3 && (fields[1] + fields[2]).matches("\\d{2,18}")) {
        long from = Long.parseLong(fields[1]);
        if (from <= last && from + Long.parseLong(fields[2]) > first) {
          taken.add(fields[0] + " in /etc/subuid");
        }
      }
    }
    String range = first + " to " + last;
    return taken.isEmpty()
        ? ok(name, range + ", nobody else's")
        : missing(
            name,
            range + " is also of " + String.join(", ", taken),
            "Choose another firecracker.uid_base: a VM must not share its user id with anybody.");
  }

  private Prerequisite limits() {
    String name = "kernel limits";
    long threads = (long) service.vmsMax() * THREADS_PER_VM;
    long open = (long) service.vmsMax() * FILES_PER_VM;
    List<String> low = new ArrayList<>();
    low(low, "kernel.pid_max", "proc/sys/kernel/pid_max", threads);
    low(low, "kernel.threads-max", "proc/sys/kernel/threads-max", threads);
    low(low, "fs.file-max", "proc/sys/fs/file-max", open);
    return low.isEmpty()
        ? ok(name, "enough for " + service.vmsMax() + " VMs")
        : warn(name, "for " + service.vmsMax() + " VMs too low", "sysctl " + String.join(" ", low));
  }

  private void low(List<String> low, String key, String path, long needed) {
    files.number(path).filter(n -> n < needed).ifPresent(_ -> low.add(key + "=" + needed));
  }

  private Prerequisite overcommit() {
    String name = "memory overcommit";
    String found = files.text("proc/sys/vm/overcommit_memory").orElse("0");
    return found.equals("2")
        ? missing(
            name,
            "vm.overcommit_memory is 2: guests are charged for memory that they don't touch",
            "sysctl vm.overcommit_memory=0")
        : ok(name, "vm.overcommit_memory is " + found);
  }

  private Prerequisite hugePages() {
    String name = "huge pages";
    long reserved = files.meminfo("HugePages_Total").orElse(0L);
    return reserved == 0
        ? ok(name, "none reserved")
        : warn(
            name,
            reserved + " reserved, which guests don't use",
            "sysctl vm.nr_hugepages=0: memory that is restored from a file has small pages.");
  }

  private Prerequisite socketPaths() {
    String name = "vsock and api paths";
    int bytes = (service.data() + LONGEST_SOCKET).getBytes(StandardCharsets.UTF_8).length;
    return bytes <= SOCKET_PATH_BYTES_MAX
        ? ok(name, bytes + " of " + SOCKET_PATH_BYTES_MAX + " bytes; no kernel module is needed")
        : missing(
            name,
            "sockets in jails would have paths of " + bytes + " bytes",
            "Choose a data directory whose path is "
                + (bytes - SOCKET_PATH_BYTES_MAX)
                + " bytes shorter.");
  }

  private Prerequisite reflinks() {
    String name = "data file system";
    String type = fileSystem(service.data().toAbsolutePath());
    return type.equals("xfs") || type.equals("btrfs")
        ? ok(name, type + ": disks are cloned, not copied")
        : warn(name, type + ": disks are copied", "Put the data directory on XFS with reflink=1.");
  }

  /// The type of the file system that is mounted nearest above a path.
  private String fileSystem(Path path) {
    int depth = -1;
    String type = "unknown";
    for (String line : files.lines("proc/mounts")) {
      String[] words = line.split(" ");
      if (words.length > 2 && words[1].startsWith("/")) {
        Path mount = Path.of(words[1]);
        // Of two on one directory the later is seen.
        if (path.startsWith(mount) && mount.getNameCount() >= depth) {
          depth = mount.getNameCount();
          type = words[2];
        }
      }
    }
    return type;
  }

  private Prerequisite console() {
    String name = "kernel console";
    String found = files.text("proc/sys/kernel/printk").orElse("");
    String level = found.split("\\s+")[0];
    return level.equals("0") || level.equals("1")
        ? ok(name, "log level " + level)
        : warn(
            name,
            level.isEmpty() ? "unknown" : "log level " + level,
            "Boot with quiet loglevel=1: messages of KVM on a slow console hold up restores.");
  }

  private Prerequisite cpuModel() {
    String name = "cpu model";
    String found =
        String.join(
            " ",
            files.cpu("vendor_id").orElse("?"),
            "family " + files.cpu("cpu family").orElse("?"),
            "model " + files.cpu("model").orElse("?"),
            "stepping " + files.cpu("stepping").orElse("?"));
    return ok(
        name,
        found + "; snapshots are good on the same model, kernel and Firecracker (no CPU template)");
  }
}
