package dev.space.node;

import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.host.DiskFull;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The node's part of the data directory; `docs/data-directory.md` describes it. What is to be
/// whole or not there at all is made under a name that ends in `.partial` and then renamed.
final class Folders {

  static final String PARTIAL = ".partial";

  private final Path root;

  Folders(Path root) {
    this.root = root;
    try {
      for (Path dir : List.of(vms(), bases(), snapshots())) {
        Files.createDirectories(dir);
      }
      // VM processes have user ids of their own and pass through to their own directory; nothing of
      // another's may be read on the way. Memory files are opened before the id is changed.
      Files.setPosixFilePermissions(vms(), PosixFilePermissions.fromString("rwx--x--x"));
      Files.setPosixFilePermissions(bases(), PosixFilePermissions.fromString("rwx------"));
      Files.setPosixFilePermissions(snapshots(), PosixFilePermissions.fromString("rwx------"));
    } catch (IOException e) {
      throw failure("The data directory can't be set up", e);
    }
  }

  Path root() {
    return root;
  }

  Path vms() {
    return root.resolve("vms");
  }

  Path vm(String id) {
    return vms().resolve(id);
  }

  Path bases() {
    return root.resolve("base");
  }

  Path snapshots() {
    return root.resolve("snapshots");
  }

  Path aside() {
    return root.resolve("aside");
  }

  static Path partial(Path target) {
    return target.resolveSibling(target.getFileName() + PARTIAL);
  }

  /// Makes a directory for its owner alone. A driver opens a VM's to pass through.
  static void make(Path directory) {
    try {
      Files.createDirectory(
          directory,
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    } catch (IOException e) {
      throw failure("Making " + directory + " failed", e);
    }
  }

  /// Gives what was made aside its name, in one step.
  static void publish(Path partial, Path target) {
    try {
      Files.move(partial, target, StandardCopyOption.ATOMIC_MOVE);
    } catch (AtomicMoveNotSupportedException e) {
      throw failure("The data directory must be on one file system", e);
    } catch (IOException e) {
      throw failure("Renaming " + partial + " failed", e);
    }
  }

  /// Makes a file its owner's alone; a disk is open by the time its VM process changes its user.
  static void conceal(Path file) {
    try {
      Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
    } catch (IOException e) {
      throw failure("Protecting " + file + " failed", e);
    }
  }

  /// Makes a file or directory survive a loss of power.
  static void force(Path path) {
    try (FileChannel channel =
        FileChannel.open(
            path, Files.isDirectory(path) ? StandardOpenOption.READ : StandardOpenOption.WRITE)) {
      channel.force(true);
    } catch (IOException e) {
      throw failure("Writing " + path + " to the disk failed", e);
    }
  }

  /// Removes a file or tree; links are removed, not followed. What is not there is no error.
  static void remove(Path path) {
    try {
      Files.walkFileTree(
          path,
          new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
                throws IOException {
              Files.deleteIfExists(file);
              return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFileFailed(Path file, IOException e) throws IOException {
              if (e instanceof NoSuchFileException) {
                return FileVisitResult.CONTINUE;
              }
              throw e;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path dir, @Nullable IOException e)
                throws IOException {
              Files.deleteIfExists(dir);
              return FileVisitResult.CONTINUE;
            }
          });
    } catch (IOException e) {
      throw failure("Removing " + path + " failed", e);
    }
  }

  static List<Path> children(Path directory) {
    List<Path> out = new ArrayList<>();
    try (DirectoryStream<Path> stream = Files.newDirectoryStream(directory)) {
      stream.forEach(out::add);
    } catch (NoSuchFileException _) {
      return List.of();
    } catch (IOException e) {
      throw failure("Listing " + directory + " failed", e);
    }
    return out;
  }

  static SpaceException failure(String what, IOException e) {
    return Problem.of(DiskFull.codeOf(e), what).because(e.toString()).toException(e);
  }
}
