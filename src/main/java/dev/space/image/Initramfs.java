package dev.space.image;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.commons.compress.archivers.cpio.CpioArchiveEntry;
import org.apache.commons.compress.archivers.cpio.CpioArchiveOutputStream;
import org.apache.commons.compress.archivers.cpio.CpioConstants;

/// Writes the guest's initramfs: `/init`, the modules below `/modules`, a few empty directories and
/// the console. The same input gives the same bytes: entries are sorted, their times are 0. It
/// isn't compressed: the pages are shared by all VMs of a host, and emulated guests unpack slowly.
final class Initramfs {

  private static final List<String> DIRECTORIES =
      List.of("dev", "modules", "newroot", "proc", "run", "sys");
  private static final int CONSOLE_MAJOR = 5;
  private static final int CONSOLE_MINOR = 1;

  private final byte[] agent;
  private final List<KernelModules.Module> modules;
  private final List<String> wanted;

  /// @param modules dependencies before what needs them
  /// @param wanted names in the order in which the agent should load them
  Initramfs(byte[] agent, List<KernelModules.Module> modules, List<String> wanted) {
    this.agent = agent;
    this.modules = List.copyOf(modules);
    this.wanted = List.copyOf(wanted);
  }

  void write(OutputStream out) throws IOException {
    Map<String, byte[]> files = new TreeMap<>();
    files.put("init", agent);
    files.put("modules/modules.dep", modulesDep().getBytes(StandardCharsets.US_ASCII));
    files.put("modules/wanted", wantedList().getBytes(StandardCharsets.US_ASCII));
    for (KernelModules.Module module : modules) {
      files.put("modules/" + module.name() + ".ko", module.content());
    }
    try (var cpio =
        new CpioArchiveOutputStream(
            new BufferedOutputStream(out, 64 * 1024), CpioConstants.FORMAT_NEW)) {
      int inode = 1;
      for (String directory : DIRECTORIES) {
        put(cpio, directory, CpioConstants.C_ISDIR | 0755, inode++, new byte[0]);
      }
      CpioArchiveEntry console = new CpioArchiveEntry(CpioConstants.FORMAT_NEW, "dev/console");
      console.setMode(CpioConstants.C_ISCHR | 0600);
      console.setRemoteDeviceMaj(CONSOLE_MAJOR);
      console.setRemoteDeviceMin(CONSOLE_MINOR);
      console.setInode(inode++);
      console.setNumberOfLinks(1);
      cpio.putArchiveEntry(console);
      cpio.closeArchiveEntry();
      for (Map.Entry<String, byte[]> file : files.entrySet()) {
        int mode = file.getKey().equals("init") ? 0755 : 0644;
        put(cpio, file.getKey(), CpioConstants.C_ISREG | mode, inode++, file.getValue());
      }
    }
  }

  private static void put(
      CpioArchiveOutputStream cpio, String name, int mode, int inode, byte[] content)
      throws IOException {
    CpioArchiveEntry entry = new CpioArchiveEntry(CpioConstants.FORMAT_NEW, name);
    entry.setMode(mode);
    entry.setInode(inode);
    entry.setNumberOfLinks((mode & CpioConstants.C_ISDIR) == 0 ? 1 : 2);
    entry.setSize(content.length);
    cpio.putArchiveEntry(entry);
    cpio.write(content);
    cpio.closeArchiveEntry();
  }

  /// Lines as `depmod` writes them: `name.ko: dependency.ko …`, nearest dependency first.
  String modulesDep() {
    return modules.stream()
        .map(
            m ->
                m.name()
                    + ".ko:"
                    + m.depends().stream().map(d -> " " + d + ".ko").collect(Collectors.joining()))
        .collect(Collectors.joining("\n", "", "\n"));
  }

  private String wantedList() {
    List<String> present = modules.stream().map(KernelModules.Module::name).toList();
    return wanted.stream()
        .map(KernelModules::canonical)
        .filter(present::contains)
        .collect(Collectors.joining("\n", "", "\n"));
  }
}
