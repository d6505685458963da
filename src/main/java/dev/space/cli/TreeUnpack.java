package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermission;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.LongConsumer;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveInputStream;

/// Unpacks a tree that came from a sandbox. The archive is a stranger's: nothing of it is ever
/// written outside the folder, neither by `..` nor through a link.
final class TreeUnpack {

  private static final int BUFFER_BYTES = 256 * 1024;

  private final Path root;
  private final LongConsumer progress;
  private final Map<Path, Set<PosixFilePermission>> folderModes = new LinkedHashMap<>();
  private long unpacked;

  /// @param root the folder, which is there
  /// @param progress gets the number of bytes of files that were unpacked so far
  TreeUnpack(Path root, LongConsumer progress) throws IOException {
    this.root = root.toRealPath();
    this.progress = progress;
  }

  void unpack(InputStream tar) throws IOException {
    try (TarArchiveInputStream entries =
        new TarArchiveInputStream(new BufferedInputStream(tar, BUFFER_BYTES), "UTF-8")) {
      for (TarArchiveEntry entry = entries.getNextEntry();
          entry != null;
          entry = entries.getNextEntry()) {
        take(entry, entries);
      }
    }
    // At the end, so that a folder one may not write to can be filled.
    for (Map.Entry<Path, Set<PosixFilePermission>> folder :
        folderModes.entrySet().stream().toList().reversed()) {
      Files.setPosixFilePermissions(folder.getKey(), folder.getValue());
    }
  }

  private void take(TarArchiveEntry entry, InputStream content) throws IOException {
    Path target = inside(entry.getName());
    if (target.equals(root)) {
      return;
    }
    folders(above(target));
    if (entry.isDirectory()) {
      folders(target);
      folderModes.put(target, FileModes.permissions(entry.getMode() | 0700));
    } else if (entry.isSymbolicLink()) {
      remove(target);
      Files.createSymbolicLink(target, Path.of(entry.getLinkName()));
    } else if (entry.isLink()) {
      Path other = inside(entry.getLinkName());
      folders(above(other));
      if (!Files.isRegularFile(other, LinkOption.NOFOLLOW_LINKS)) {
        throw refused(entry.getLinkName(), "is linked to but was not part of the tree");
      }
      remove(target);
      Files.createLink(target, other);
    } else if (entry.isFile()) {
      remove(target);
      unpacked += Files.copy(content, target, StandardCopyOption.REPLACE_EXISTING);
      Files.setPosixFilePermissions(target, FileModes.permissions(entry.getMode()));
      Files.setLastModifiedTime(target, FileTime.from(entry.getLastModifiedDate().toInstant()));
      progress.accept(unpacked);
    }
    // Devices and pipes of a sandbox have no business here.
  }

  private Path inside(String name) {
    Path target = root.resolve(name.replaceFirst("^/+", "")).normalize();
    if (!target.startsWith(root)) {
      throw refused(name, "leads out of the folder");
    }
    return target;
  }

  /// Makes the folders down to one; none of them may be a link.
  private void folders(Path folder) throws IOException {
    Path at = root;
    for (Path part : root.relativize(folder)) {
      if (part.toString().isEmpty()) {
        return;
      }
      at = at.resolve(part);
      if (Files.isSymbolicLink(at)) {
        throw refused(root.relativize(at).toString(), "is a link that others lie below");
      }
      if (!Files.isDirectory(at)) {
        Files.createDirectory(at);
      }
    }
  }

  private static Path above(Path path) {
    Path parent = path.getParent();
    return parent == null ? path : parent;
  }

  private static void remove(Path target) throws IOException {
    if (!Files.isDirectory(target, LinkOption.NOFOLLOW_LINKS)) {
      Files.deleteIfExists(target);
    }
  }

  private static SpaceException refused(String name, String why) {
    return Problem.of(ErrorCode.INVALID_REQUEST, "The tree was not unpacked to its end")
        .because("'" + name + "' " + why)
        .remedy("Copy what you need file by file.")
        .toException();
  }
}
