package dev.space.image;

import dev.space.host.SparseFile;
import java.io.IOException;
import java.nio.file.Path;

/// What a file occupies on the disk, holes left out.
final class Allocated {

  private Allocated() {}

  static long bytes(Path file) throws IOException {
    return SparseFile.data(file).stream().mapToLong(SparseFile.Extent::length).sum();
  }
}
