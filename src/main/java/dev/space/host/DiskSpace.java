package dev.space.host;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/// The room on the file system that a path lies on, as statvfs(3) tells it. A
/// [java.nio.file.FileStore] tells the same, but looks its mount point up in the mount table, which
/// has none for the root of a chroot.
///
/// @param freeBytes what this user may still write
/// @param totalBytes the size of the file system
public record DiskSpace(long freeBytes, long totalBytes) {

  /// @throws IOException when there is no such path, or its file system doesn't say its size
  public static DiskSpace of(Path path) throws IOException {
    File file = path.toFile();
    DiskSpace space = new DiskSpace(file.getUsableSpace(), file.getTotalSpace());
    if (space.totalBytes() > 0) {
      return space;
    }
    // java.io.File says 0 for every error.
    if (!Files.exists(path)) {
      throw new NoSuchFileException(path.toString());
    }
    throw new IOException("the file system of " + path + " doesn't say its size");
  }
}
