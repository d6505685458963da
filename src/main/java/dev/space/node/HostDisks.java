package dev.space.node;

import dev.space.core.node.WritableDisks;
import dev.space.host.SparseFile;
import dev.space.image.DiskImages;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/// Disks as files of this host. Copies are made within this process, as a create waits for one: by
/// copy_file_range, which shares blocks where the file system can, and hole for hole.
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
    boolean done = false;
    try {
      copyData(source, target);
      done = true;
    } catch (IOException e) {
      throw Folders.failure("Copying the disk " + source + " failed", e);
    } finally {
      if (!done) {
        Folders.remove(target);
      }
    }
  }

  private static void copyData(Path source, Path target) throws IOException {
    try (FileChannel from = FileChannel.open(source);
        FileChannel to =
            FileChannel.open(target, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
      for (SparseFile.Extent extent : SparseFile.data(source)) {
        long end = extent.offset() + extent.length();
        long at = extent.offset();
        to.position(at);
        while (at < end) {
          long n = from.transferTo(at, end - at, to);
          if (n <= 0) {
            throw new IOException(source + " ended at byte " + at + " of " + end);
          }
          at += n;
        }
      }
      long size = from.size();
      if (to.size() < size) {
        // A file only gets longer by its last byte, which is zero where a hole ends a file.
        to.write(ByteBuffer.allocate(1), size - 1);
      }
    }
  }

  @Override
  public long occupied(Path file) {
    try {
      return SparseFile.data(file).stream().mapToLong(SparseFile.Extent::length).sum();
    } catch (IOException e) {
      throw Folders.failure("Reading the size of " + file + " failed", e);
    }
  }
}
