package dev.space.vmm.qemu;

import dev.space.core.vm.VmSpec;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// The arguments of one QEMU process. The same machine is described for a boot and for every
/// restore, because device state fits only equal devices in equal order.
///
/// @param kvm whether KVM runs the guest, else software
/// @param user user and group id to change to before the guest runs
record CommandLine(
    String binary, QemuVersion version, boolean kvm, VmSpec spec, Optional<Integer> user) {

  static final String QMP_SOCKET = "qmp.sock";
  static final String AGENT_SOCKET = "agent.sock";

  static final String INCOMING_SOCKET = "in.sock";
  static final String OUTGOING_SOCKET = "out.sock";
  static final String SAVED_STATE = "saved.state";
  static final String MEMORY = "memory";
  static final String CONSOLE = "console";
  static final int CONSOLE_BYTES = 64 * 1024;

  /// Why each is there: docs/decisions.md, "The guest kernel.s arguments".
  private static final String KERNEL_ARGUMENTS =
      "console=ttyS0 quiet panic=-1 reboot=t no_timer_check random.trust_cpu=on"
          + " tsc=reliable space.link=virtio:space.agent";

  /// Boots a kernel; the memory is a file of the VM's own.
  List<String> boot(Path kernel, Path initramfs) {
    List<String> args = machine(MEMORY, true);
    args.addAll(
        List.of(
            "-kernel", kernel.toString(),
            "-initrd", initramfs.toString(),
            "-append", KERNEL_ARGUMENTS));
    return List.copyOf(args);
  }

  /// Waits for device state; the memory is a private mapping of a file that is never written to.
  List<String> restore(Path memory) {
    List<String> args = machine(memory.toString(), false);
    // No kernel: it is in the memory already, and loading it again costs more than all else.
    args.addAll(List.of("-S", "-incoming", "unix:" + INCOMING_SOCKET));
    return List.copyOf(args);
  }

  private List<String> machine(String memory, boolean shared) {
    List<String> a = new ArrayList<>(64);
    a.add(binary);
    // The last option is how a process is found again by its directory.
    add(a, "-name", "space,process=space-vm", "-pidfile", pidFile(spec.directory()).toString());
    // Without the stream's head (below) QEMU 10 fails an assertion over the stream's description.
    add(
        a,
        "-M",
        "q35,smm=off,sata=off,usb=off,vmport=off,dump-guest-core=off,suppress-vmdesc=on,"
            + "memory-backend=mem");
    if (kvm) {
      add(a, "-accel", "kvm", "-cpu", "host");
    } else {
      add(a, "-accel", "tcg,thread=multi", "-cpu", "max");
    }
    int mib = spec.resources().memoryMib();
    add(a, "-smp", Integer.toString(spec.resources().vcpus()), "-m", mib + "M");
    add(
        a,
        "-object",
        "memory-backend-file,id=mem,size="
            + mib
            + "M,share="
            + (shared ? "on" : "off")
            + ",mem-path="
            + escaped(memory));
    a.addAll(List.of("-nodefaults", "-no-user-config", "-display", "none"));
    // A guest that ended stays until the daemon has read why.
    a.addAll(List.of("-no-reboot", "-no-shutdown"));
    // The stream then begins with the devices; what precedes them is of no use here.
    add(a, "-global", "migration.send-configuration=off");
    add(a, "-global", "migration.store-global-state=off");
    add(
        a,
        "-blockdev",
        "driver=raw,node-name=vda,read-only=on,file.driver=file,file.locking=off,file.filename="
            + escaped(spec.rootImage().toAbsolutePath().toString()));
    add(a, "-device", "virtio-blk-pci,drive=vda");
    // Host flushes are left to whoever saves the VM: a VM never outlives its host's memory.
    add(
        a,
        "-blockdev",
        "driver=raw,node-name=vdb,cache.no-flush=on,discard=unmap,file.driver=file,file.locking=off,"
            + "file.discard=unmap,file.filename="
            + escaped(spec.directory().relativize(spec.disk()).toString()));
    add(a, "-device", "virtio-blk-pci,drive=vdb");
    add(a, "-device", "virtio-serial-pci,max_ports=2");
    add(a, "-chardev", "socket,id=agent,server=on,wait=off,path=" + AGENT_SOCKET);
    add(a, "-device", "virtserialport,id=port,chardev=agent,name=space.agent");
    add(a, "-device", "virtio-rng-pci");
    add(a, "-chardev", "ringbuf,id=" + CONSOLE + ",size=" + CONSOLE_BYTES);
    add(a, "-serial", "chardev:" + CONSOLE);
    add(a, "-chardev", "socket,id=qmp,server=on,wait=off,path=" + QMP_SOCKET);
    add(a, "-mon", "chardev=qmp,mode=control");
    a.addAll(privileges());
    return a;
  }

  /// A user id is changed to after the filter is set, so the filter then has to leave room for it;
  /// the process has no privilege left to raise and can't gain one (`no_new_privs`).
  private List<String> privileges() {
    String filter = "on,obsolete=deny,spawn=deny,resourcecontrol=deny";
    if (user.isEmpty()) {
      return List.of("-sandbox", filter + ",elevateprivileges=deny");
    }
    String ids = user.get() + ":" + user.get();
    return version.atLeast(9, 1)
        ? List.of("-sandbox", filter, "-run-with", "user=" + ids)
        : List.of("-sandbox", filter, "-runas", ids);
  }

  static Path pidFile(Path directory) {
    return directory.toAbsolutePath().resolve("qemu.pid");
  }

  private static void add(List<String> args, String... more) {
    args.addAll(List.of(more));
  }

  /// A comma in an option's value is written twice.
  private static String escaped(String value) {
    return value.replace(",", ",,");
  }
}
