package dev.space.node;

import dev.space.core.node.WritableDisks;
import dev.space.host.SparseFile;
import dev.space.image.DiskImages;
import java.io.IOException;
import java.nio.file.Path;

/// Disks as files of this host.
public final class HostDisks implements WritableDisks {

  private final DiskImages images;

  public HostDisks(DiskImages images) {
    this.images = images;
  }

  @Override
  public void makePristine(Path target, int mib) {
    images.makeWritable(target, mib);
  }

  @Override
  public void copy(Path source, Path target) {
    try {
      SparseFile.copy(source, target);
    } catch (IOException e) {
      throw Folders.failure("Copying the disk " + source + " failed", e);
    }
  }

  @Override
  public long occupied(Path file) {
    try {
      return SparseFile.occupied(file);
    } catch (IOException e) {
      throw Folders.failure("Reading the size of " + file + " failed", e);
    }
  }
}
