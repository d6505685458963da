package dev.space.host;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// A cgroup v2 leaf for each VM process, below one group of the daemon's. Where the host has none,
/// or this user may make none, VMs run without: `space doctor` says so and nothing fails.
///
/// The group lies at the top and not in the daemon's own, so that a service manager that ends all
/// of a service's group doesn't end the VMs with it.
///
/// Files: the kernel's Documentation/admin-guide/cgroup-v2.rst.
public final class Cgroups {

  private static final Logger LOG = LoggerFactory.getLogger(Cgroups.class);
  private static final List<String> CONTROLLERS = List.of("cpu", "memory", "pids");
  private static final List<String> NEEDED = List.of("cpu", "memory");

  /// What a VM process may need beside its guest's memory: QEMU itself and, in software emulation,
  /// its translated code, which it bounds to 1 GiB.
  private static final long OVERHEAD_BYTES = 1536L << 20;

  /// Threads of a VM process: one per vCPU, and QEMU's own.
  private static final int THREADS_BESIDE_VCPUS = 64;

  private final Path group;

  private Cgroups(Path group) {
    this.group = group;
  }

  /// Makes the group when the host has cgroup v2 with the controllers for CPU and memory.
  ///
  /// @param root the file system's root
  /// @param name of the group, one path element
  public static Optional<Cgroups> open(Path root, String name) {
    return open(root.resolve("sys/fs/cgroup"), name, NEEDED);
  }

  /// @param top where cgroup v2 is mounted
  /// @param needed controllers without which there is no use in it
  static Optional<Cgroups> open(Path top, String name, List<String> needed) {
    try {
      Path controllers = top.resolve("cgroup.controllers");
      if (!Files.isReadable(controllers)) {
        return Optional.empty();
      }
      List<String> there = Arrays.asList(Files.readString(controllers).strip().split(" "));
      if (!there.containsAll(needed)) {
        return Optional.empty();
      }
      enable(top, there);
      Path group = Files.createDirectories(top.resolve(name));
      enable(group, there);
      return Optional.of(new Cgroups(group));
    } catch (IOException e) {
      LOG.info("VMs run without cgroups of their own: {}", e.toString());
      return Optional.empty();
    }
  }

  private static void enable(Path group, List<String> there) throws IOException {
    for (String controller : CONTROLLERS) {
      if (there.contains(controller)) {
        Files.writeString(group.resolve("cgroup.subtree_control"), "+" + controller);
      }
    }
  }

  /// Makes the leaf of a VM, with its bounds; empty when that fails, which is no reason not to run
  /// it.
  ///
  /// @param id of the VM, one path element
  /// @param memoryBytes the guest's
  public Optional<Path> make(String id, int vcpus, long memoryBytes) {
    Path leaf = group.resolve(id);
    try {
      Files.createDirectories(leaf);
      set(leaf, "cpu.weight", Integer.toString(Math.min(10_000, 100 * vcpus)));
      set(leaf, "memory.max", Long.toString(memoryBytes + OVERHEAD_BYTES));
      set(leaf, "memory.oom.group", "1");
      set(leaf, "pids.max", Integer.toString(vcpus + THREADS_BESIDE_VCPUS));
      return Optional.of(leaf);
    } catch (IOException e) {
      LOG.warn("VM {} runs without a cgroup of its own: {}", id, e.toString());
      remove(id);
      return Optional.empty();
    }
  }

  private static void set(Path leaf, String file, String value) throws IOException {
    Path path = leaf.resolve(file);
    if (Files.exists(path)) {
      Files.writeString(path, value);
    }
  }

  /// Ends every process in the leaf of a VM, whatever they are doing; nothing happens on kernels
  /// before 5.14, nor where there is no leaf.
  public void kill(String id) {
    try {
      set(group.resolve(id), "cgroup.kill", "1");
    } catch (IOException e) {
      LOG.warn("The processes of VM {} are not ended by its cgroup: {}", id, e.toString());
    }
  }

  /// Removes the leaf of a VM whose process is gone; what is not there is no error.
  public void remove(String id) {
    try {
      Files.deleteIfExists(group.resolve(id));
    } catch (IOException e) {
      LOG.warn("The cgroup of VM {} is not removed: {}", id, e.toString());
    }
  }

  /// Removes the leaves that hold no process: those of VMs that ended while no daemon looked.
  public void sweep() {
    try (var leaves = Files.newDirectoryStream(group, Files::isDirectory)) {
      for (Path leaf : leaves) {
        Path events = leaf.resolve("cgroup.events");
        if (Files.exists(events) && Files.readString(events).contains("populated 0")) {
          Files.deleteIfExists(leaf);
        }
      }
    } catch (IOException e) {
      LOG.warn("Left-over cgroups are not removed: {}", e.toString());
    }
  }
}
