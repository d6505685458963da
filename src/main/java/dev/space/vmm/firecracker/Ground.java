package dev.space.vmm.firecracker;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.host.SocketPath;
import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The files of one run of a Firecracker process, `fc/` in the VM's directory. The process knows
/// them by names alone, the same in every VM, so that what a saved state remembers is each clone's
/// own.
///
/// Without a jail `fc/` is the process's working directory and names lead to files elsewhere by
/// symbolic links. In a jail the process sees a root below `fc/` that is its own: it can replace
/// anything there. So the daemon never opens a file by a path in it; what it reads lies in `fc/`,
/// where the daemon alone makes files, and is linked into the root a second time.
final class Ground {

  static final String API = "api.sock";
  static final String VSOCK = "v.sock";
  static final String LOG = "log";
  static final String OUTPUT = "output";
  static final String CONSOLE = "console";
  static final String METRICS = "metrics";
  static final String STATE = "vmstate";
  static final String MEMORY = "memory";
  static final String FULL = "full";
  static final String DIFF = "diff";
  static final String CHANGES = "changes";
  static final String ROOT_IMAGE = "vda";
  static final String DISK = "vdb";
  static final String KERNEL = "vmlinux";
  static final String INITRAMFS = "initramfs";

  static final String NAME = "fc";

  private static final Set<PosixFilePermission> PRIVATE =
      PosixFilePermissions.fromString("rw-------");

  private final Path home;
  private final Optional<Integer> user;
  private final Path view;

  private Ground(Path home, Optional<Integer> user, Path view) {
    this.home = home;
    this.user = user;
    this.view = view;
  }

  /// That of a process without a jail.
  static Ground open(Path directory) {
    Path home = directory.toAbsolutePath().normalize().resolve(NAME);
    return new Ground(home, Optional.empty(), home);
  }

  /// That of a jailed process.
  ///
  /// @param executable file name of the binary, which the jailer names its directory by
  /// @param id the jailer's
  static Ground jailed(Path directory, String executable, String id, int user) {
    Path home = directory.toAbsolutePath().normalize().resolve(NAME);
    Path view = home.resolve(executable).resolve(id).resolve("root");
    return new Ground(home, Optional.of(user), view);
  }

  /// Where the daemon makes files.
  Path home() {
    return home;
  }

  Path file(String name) {
    return home.resolve(name);
  }

  /// What the process sees as its directory.
  Path view() {
    return view;
  }

  Optional<Integer> user() {
    return user;
  }

  Path socket(String name) {
    return SocketPath.of(view.resolve(name));
  }

  /// Starts over: removes what an earlier run left.
  void prepare() throws IOException {
    clear();
    Files.createDirectory(
        home, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    if (user.isPresent()) {
      Files.createDirectories(view);
    }
  }

  /// Removes all of it. Links are removed, not followed.
  void clear() throws IOException {
    if (!Files.exists(home, LinkOption.NOFOLLOW_LINKS)) {
      return;
    }
    Files.walkFileTree(
        home,
        new SimpleFileVisitor<>() {
          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes about)
              throws IOException {
            Files.deleteIfExists(file);
            return FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult postVisitDirectory(Path dir, @Nullable IOException e)
              throws IOException {
            Files.deleteIfExists(dir);
            return FileVisitResult.CONTINUE;
          }
        });
  }

  /// Lets the process read a file that others read too. For a jail it is made readable for
  /// everybody, and its directory one that nobody else gets through.
  void lend(String name, Path file) throws IOException {
    if (user.isPresent()) {
      Path real = file.toRealPath();
      Set<PosixFilePermission> permissions = new HashSet<>(Files.getPosixFilePermissions(real));
      if (permissions.add(PosixFilePermission.OTHERS_READ)) {
        Files.setPosixFilePermissions(
            real.resolveSibling(""), PosixFilePermissions.fromString("rwx------"));
        Files.setPosixFilePermissions(real, permissions);
      }
      link(name, real);
    } else if (!file.toAbsolutePath().normalize().equals(file(name))) {
      Files.createSymbolicLink(file(name), file.toAbsolutePath());
    }
  }

  /// Gives the process a file of its own to write to.
  void give(String name, Path file) throws IOException {
    if (user.isPresent()) {
      own(file);
      link(name, file);
    } else if (!file.toAbsolutePath().normalize().equals(file(name))) {
      Files.createSymbolicLink(file(name), file.toAbsolutePath());
    }
  }

  /// Makes an empty file for the process to write to; an old one of this name is removed.
  Path fresh(String name) throws IOException {
    Path file = file(name);
    Files.deleteIfExists(file);
    Files.createFile(file, PosixFilePermissions.asFileAttribute(PRIVATE));
    give(name, file);
    return file;
  }

  /// Takes a file away from the process and removes it.
  void drop(String name) throws IOException {
    Files.deleteIfExists(file(name));
    if (user.isPresent()) {
      Files.deleteIfExists(view.resolve(name));
    }
  }

  private void own(Path file) throws IOException {
    Files.setAttribute(file, "unix:uid", user.orElseThrow(), LinkOption.NOFOLLOW_LINKS);
  }

  /// A second name for a file, in the jail.
  private void link(String name, Path file) throws IOException {
    Path inside = view.resolve(name);
    Files.deleteIfExists(inside);
    try {
      Files.createLink(inside, file);
    } catch (IOException e) {
      throw Problem.of(ErrorCode.VMM_FAILED, "A file could not be put into a VM's jail.")
          .because(String.valueOf(e.getMessage()))
          .remedy("Keep the data directory and all in it on one file system.")
          .toException(e);
    }
  }
}
