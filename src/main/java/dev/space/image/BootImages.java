package dev.space.image;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.host.DiskFull;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.List;

/// The initramfs images in `<data>/boot/`, one for each pair of agent and kernel, named by the hash
/// of what is in them.
public final class BootImages {

  /// Changes when the layout of the initramfs does, so that older images aren't used.
  private static final String LAYOUT = "1";

  private final Path root;

  /// @param data the service's data directory
  public BootImages(Path data) {
    this.root = data.resolve("boot");
  }

  /// The boot files for a kernel and an agent, made unless they are there.
  ///
  /// @param agent the static agent, `agent/bin/agent`
  /// @throws dev.space.core.error.SpaceException PREREQUISITE_MISSING when the agent or a module
  ///   isn't there, DISK_FULL
  public BootFiles prepare(GuestKernel kernel, Path agent) {
    if (!Files.isRegularFile(agent)) {
      throw Problem.of(ErrorCode.PREREQUISITE_MISSING, "there is no guest agent at " + agent)
          .remedy("Run './space build', which builds it, or give its path.")
          .toException();
    }
    try {
      byte[] content = Files.readAllBytes(agent);
      Path image = root.resolve("initramfs-" + name(kernel, content) + ".img");
      if (!Files.exists(image)) {
        Files.createDirectories(root);
        StagedFile.sweep(root);
        List<KernelModules.Module> modules =
            KernelModules.in(kernel.modules()).closure(KernelModules.WANTED);
        Initramfs initramfs = new Initramfs(content, modules, KernelModules.WANTED);
        StagedFile.write(
            image,
            aside -> {
              try (OutputStream out = Files.newOutputStream(aside)) {
                initramfs.write(out);
              }
            });
      }
      return new BootFiles(kernel.image(), image, kernel.release());
    } catch (IOException e) {
      throw Problem.of(DiskFull.codeOf(e), "the guest's initramfs could not be made")
          .because(e)
          .toException(e);
    }
  }

  /// The uncompressed kernel, which Firecracker boots.
  ///
  /// @throws dev.space.core.error.SpaceException PREREQUISITE_MISSING when there is none in it
  public Path vmlinux(GuestKernel kernel) {
    return Vmlinux.extract(kernel, root);
  }

  private static String name(GuestKernel kernel, byte[] agent) {
    MessageDigest digest = Digests.sha256();
    Digests.add(digest, LAYOUT);
    Digests.add(digest, kernel.release());
    Digests.add(digest, kernel.sha256());
    Digests.add(digest, kernel.modules().toAbsolutePath().toString());
    KernelModules.WANTED.forEach(name -> Digests.add(digest, name));
    digest.update(agent);
    return Digests.hex(digest).substring(0, 16);
  }
}
