package dev.space.app;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.node.WritableDisks;
import dev.space.host.FileCopies;
import dev.space.host.SparseFile;
import dev.space.image.DiskImages;
import java.io.IOException;
import java.nio.file.Path;

/// Writable disks as ext4 images and sparse copies of the host's file system.
record HostDisks(DiskImages images, FileCopies copies) implements WritableDisks {

  @Override
  public void makePristine(Path target, int mib) {
    images.makeWritable(target, mib);
  }

  @Override
  public void copy(Path source, Path target) {
    copies.copy(source, target);
  }

  @Override
  public long occupied(Path file) {
    try {
      return SparseFile.data(file).stream().mapToLong(SparseFile.Extent::length).sum();
    } catch (IOException e) {
      throw Problem.of(ErrorCode.INTERNAL, file + " can't be measured")
          .because(String.valueOf(e.getMessage()))
          .toException(e);
    }
  }
}
