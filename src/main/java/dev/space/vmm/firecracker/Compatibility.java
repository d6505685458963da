package dev.space.vmm.firecracker;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// What a snapshot is bound to: a guest that wakes up on another processor, microcode or KVM may
/// crash at any later time, and Firecracker itself only logs a warning.
///
/// @param release of Firecracker, without its patch level
/// @param format of Firecracker's snapshots
/// @param cpu vendor, family, model, stepping
/// @param microcode revision
/// @param kernel of the host, major and minor
record Compatibility(String release, String format, String cpu, String microcode, String kernel) {

  /// That of this host.
  static Compatibility here(FirecrackerVersion version, Path proc) {
    Map<String, String> cpu = new HashMap<>();
    String kernel = "unknown";
    try {
      for (String line : Files.readAllLines(proc.resolve("cpuinfo"))) {
        int colon = line.indexOf(':');
        if (colon > 0) {
          cpu.putIfAbsent(line.substring(0, colon).strip(), line.substring(colon + 1).strip());
        }
      }
      String[] parts = Files.readString(proc.resolve("sys/kernel/osrelease")).split("\\.", 3);
      kernel = parts.length < 2 ? parts[0].strip() : parts[0] + "." + parts[1];
    } catch (IOException _) {
      // Unknown is a name as good as any: it equals itself on this host.
    }
    return new Compatibility(
        version.release(),
        version.snapshotFormat(),
        String.join(
            "-",
            cpu.getOrDefault("vendor_id", "unknown"),
            cpu.getOrDefault("cpu family", "0"),
            cpu.getOrDefault("model", "0"),
            cpu.getOrDefault("stepping", "0")),
        cpu.getOrDefault("microcode", "unknown"),
        kernel);
  }

  /// All of it in one word.
  String word() {
    return String.join("-", "firecracker", release, format, cpu, microcode, "linux", kernel);
  }

  /// Why what was saved there can't be restored here; empty when it can.
  Optional<String> differenceFrom(Compatibility saved) {
    List<String> all = new ArrayList<>();
    compare(all, "Firecracker", saved.release, release);
    compare(all, "snapshot format", saved.format, format);
    compare(all, "processor", saved.cpu, cpu);
    compare(all, "microcode", saved.microcode, microcode);
    compare(all, "host kernel", saved.kernel, kernel);
    return all.isEmpty() ? Optional.empty() : Optional.of(String.join("; ", all));
  }

  private static void compare(List<String> all, String what, String saved, String here) {
    if (!saved.equals(here)) {
      all.add("it was saved with " + what + " " + saved + ", this is " + here);
    }
  }
}
