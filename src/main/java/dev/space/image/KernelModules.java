package dev.space.image;

import com.github.luben.zstd.ZstdInputStream;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import org.tukaani.xz.XZInputStream;

/// The modules of one kernel release. Names are canonical: dashes are underscores, as the kernel
/// itself writes them.
final class KernelModules {

  /// What a guest needs, in the order it is good to load them: the disks first, then the overlay,
  /// then the channel to the host. The balloon gives freed memory back under Firecracker.
  static final List<String> WANTED =
      List.of(
          "virtio_pci",
          "virtio_mmio",
          "virtio_blk",
          "ext4",
          "overlay",
          "virtio_console",
          "virtio_rng",
          "virtio_balloon",
          "virtio_net",
          "vsock",
          "vmw_vsock_virtio_transport");

  private static final long MODULE_BYTES_MAX = 64L << 20;

  private final Path directory;
  private final Map<String, Path> files;
  private final Set<String> builtin;

  private KernelModules(Path directory, Map<String, Path> files, Set<String> builtin) {
    this.directory = directory;
    this.files = files;
    this.builtin = builtin;
  }

  /// Finds the modules below a directory such as `lib/modules/<release>`.
  static KernelModules in(Path directory) throws IOException {
    Map<String, Path> files = new TreeMap<>();
    try (Stream<Path> tree = Files.walk(directory)) {
      tree.filter(Files::isRegularFile)
          .filter(p -> p.getFileName().toString().matches(".+\\.ko(\\.(xz|zst|gz))?"))
          .forEach(p -> files.put(nameOf(p.getFileName().toString()), p));
    }
    Set<String> builtin = new LinkedHashSet<>();
    Path list = directory.resolve("modules.builtin");
    if (Files.exists(list)) {
      for (String line : Files.readAllLines(list)) {
        builtin.add(nameOf(line.substring(line.lastIndexOf('/') + 1)));
      }
    }
    return new KernelModules(directory, files, builtin);
  }

  static String canonical(String name) {
    return name.replace('-', '_');
  }

  private static String nameOf(String file) {
    return canonical(file.replaceFirst("\\.ko(\\.(xz|zst|gz))?$", ""));
  }

  /// One module, decompressed.
  ///
  /// @param depends all that must be loaded before it, nearest first, as in `modules.dep`
  record Module(String name, byte[] content, List<String> depends) {}

  /// The wanted modules and all they depend on, dependencies first. What is built into the kernel
  /// is left out.
  ///
  /// @throws dev.space.core.error.SpaceException PREREQUISITE_MISSING when the kernel lacks one
  List<Module> closure(List<String> wanted) throws IOException {
    Map<String, Module> loaded = new LinkedHashMap<>();
    for (String name : wanted) {
      load(canonical(name), loaded, new LinkedHashSet<>());
    }
    return List.copyOf(loaded.values());
  }

  private void load(String name, Map<String, Module> loaded, Set<String> above) throws IOException {
    if (loaded.containsKey(name) || builtin.contains(name) && !files.containsKey(name)) {
      return;
    }
    Path file = files.get(name);
    if (file == null || !above.add(name)) {
      throw Problem.of(
              ErrorCode.PREREQUISITE_MISSING,
              "the guest kernel has no module " + name + " that a guest needs")
          .because(
              file == null
                  ? "neither " + directory + " nor its modules.builtin has it"
                  : "modules depend on each other: " + String.join(", ", above))
          .remedy(
              "Use Debian's cloud kernel ('space setup' fetches it) or one with virtio and"
                  + " overlay.")
          .toException();
    }
    byte[] content = read(file);
    List<String> direct =
        ModuleInfo.read(content)
            .orElseThrow(
                () ->
                    Problem.of(
                            ErrorCode.PREREQUISITE_MISSING,
                            "the kernel module " + file + " is damaged")
                        .remedy(
                            "Remove the folder 'kernel' of the data directory and run 'space"
                                + " setup', which fetches it again.")
                        .toException())
            .depends();
    List<String> all = new ArrayList<>();
    for (String dependency : direct) {
      load(dependency, loaded, above);
      Module below = loaded.get(dependency);
      if (below != null) {
        all.add(dependency);
      }
    }
    for (String dependency : List.copyOf(all)) {
      for (String deeper : requireLoaded(loaded, dependency).depends()) {
        if (!all.contains(deeper)) {
          all.add(deeper);
        }
      }
    }
    above.remove(name);
    loaded.put(name, new Module(name, content, List.copyOf(all)));
  }

  private static Module requireLoaded(Map<String, Module> loaded, String name) {
    Module module = loaded.get(name);
    if (module == null) {
      throw new IllegalStateException(name + " was not loaded before what needs it");
    }
    return module;
  }

  private static byte[] read(Path file) throws IOException {
    String name = file.getFileName().toString();
    try (InputStream raw = Files.newInputStream(file);
        InputStream in =
            name.endsWith(".xz")
                ? new XZInputStream(raw)
                : name.endsWith(".zst")
                    ? new ZstdInputStream(raw)
                    : name.endsWith(".gz") ? new GZIPInputStream(raw) : raw) {
      byte[] content = in.readNBytes((int) MODULE_BYTES_MAX);
      if (content.length == MODULE_BYTES_MAX) {
        throw new IOException(file + " is larger than any kernel module");
      }
      return content;
    }
  }
}
