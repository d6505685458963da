package dev.space.vmm.firecracker;

import dev.space.core.vm.VmSpec;
import dev.space.vmm.firecracker.FirecrackerSettings.DiskRate;
import java.util.LinkedHashMap;
import java.util.Map;

/// The bodies of the API's calls. Firecracker refuses fields that it doesn't know, so each field
/// stands with the version that brought it where that is newer than the oldest that is taken.
record Description(FirecrackerVersion version, DiskRate diskRate) {

  static final int AGENT_PORT = 52;

  /// A guest sees its host as 2; all guests may have the same number.
  private static final int GUEST_CID = 3;

  private static final long KIB = 1024;
  private static final int SECOND_MILLIS = 1000;

  /// What a guest may write to its console: enough for the words of a panic at once, too little to
  /// keep a disk busy.
  private static final long CONSOLE_BURST_BYTES = 64 * KIB;

  private static final long CONSOLE_BYTES_PER_SECOND = 16 * KIB;

  /// Firecracker has no power-off, and a guest that ends its process by a reboot is noticed at
  /// once. Modules are needed, so `nomodule` of Firecracker's own arguments is not among them.
  private static final String KERNEL_ARGUMENTS =
      "console=ttyS0 quiet panic=-1 reboot=k no_timer_check random.trust_cpu=on tsc=reliable"
          + " swiotlb=noforce i8042.noaux i8042.nomux i8042.dumbkbd"
          + " space.link=vsock:"
          + AGENT_PORT
          + " space.poweroff=reboot";

  Map<String, Object> metrics(String id) {
    Map<String, Object> body = new LinkedHashMap<>();
    body.put("metrics_path", Ground.METRICS);
    if (version.atLeast(1, 17, 0)) {
      body.put("emit_id", true);
    }
    return body;
  }

  Map<String, Object> serial() {
    return Map.of(
        "serial_out_path",
        Ground.CONSOLE,
        "rate_limiter",
        Map.of(
            "size",
            CONSOLE_BYTES_PER_SECOND,
            "one_time_burst",
            CONSOLE_BURST_BYTES,
            "refill_time",
            SECOND_MILLIS));
  }

  Map<String, Object> machine(VmSpec spec) {
    return Map.of(
        "vcpu_count",
        spec.resources().vcpus(),
        "mem_size_mib",
        spec.resources().memoryMib(),
        "track_dirty_pages",
        false);
  }

  Map<String, Object> boot() {
    return Map.of(
        "kernel_image_path",
        Ground.KERNEL,
        "initrd_path",
        Ground.INITRAMFS,
        "boot_args",
        KERNEL_ARGUMENTS);
  }

  /// A disk. Host flushes are left to whoever saves the VM: a VM never outlives its host's memory.
  Map<String, Object> drive(String name, boolean readOnly) {
    Map<String, Object> body = new LinkedHashMap<>();
    body.put("drive_id", name);
    // The initramfs finds the root by itself; a root device would change the kernel's arguments.
    body.put("is_root_device", false);
    body.put("is_read_only", readOnly);
    body.put("path_on_host", name);
    body.put("cache_type", "Unsafe");
    if (diskRate.bounded()) {
      body.put("rate_limiter", limiter());
    }
    return body;
  }

  /// New bounds for a disk, where zeros take bounds away.
  Map<String, Object> driveRate(String name) {
    return Map.of("drive_id", name, "rate_limiter", limiter());
  }

  private Map<String, Object> limiter() {
    return Map.of(
        "bandwidth", bucket(diskRate.bytesPerSecond()), "ops", bucket(diskRate.opsPerSecond()));
  }

  private static Map<String, Object> bucket(long perSecond) {
    return Map.of("size", perSecond, "refill_time", perSecond == 0 ? 0 : SECOND_MILLIS);
  }

  static Map<String, Object> vsock() {
    return Map.of("guest_cid", GUEST_CID, "uds_path", Ground.VSOCK);
  }

  static Map<String, Object> balloon() {
    // What a guest frees goes back to the host by itself; nobody inflates it.
    return Map.of(
        "amount_mib",
        0,
        "deflate_on_oom",
        true,
        "stats_polling_interval_s",
        0,
        "free_page_reporting",
        true);
  }

  static Map<String, Object> load() {
    return Map.of(
        "snapshot_path",
        Ground.STATE,
        "mem_backend",
        Map.of("backend_type", "File", "backend_path", Ground.MEMORY),
        "track_dirty_pages",
        true,
        "resume_vm",
        false);
  }

  static Map<String, Object> save(String type, String memory) {
    return Map.of("snapshot_type", type, "snapshot_path", Ground.STATE, "mem_file_path", memory);
  }

  static Map<String, Object> state(String name) {
    return Map.of("state", name);
  }
}
