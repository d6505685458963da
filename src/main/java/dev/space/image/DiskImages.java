package dev.space.image;

import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.host.DiskFull;
import dev.space.host.Processes;
import dev.space.host.SparseFile;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/// Makes the writable disks of sandboxes (`vdb`): a sparse ext4 with `upper/` and `work/`. One is
/// made by mke2fs for each size; the parts of it that aren't zero, less than a megabyte, are kept
/// in memory and written into each new disk, which takes about a millisecond.
public final class DiskImages {

  private final Path root;
  private final Processes processes;
  private final ConcurrentMap<Integer, List<Part>> pristine = new ConcurrentHashMap<>();

  private record Part(long offset, byte[] content) {}

  /// @param data the service's data directory
  public DiskImages(Path data, Processes processes) {
    this.root = data.resolve("disks");
    this.processes = processes;
  }

  /// Makes a new, empty disk.
  ///
  /// @param target doesn't exist yet; on failure it doesn't either
  /// @param diskMib its size in MiB, sparse on the host
  /// @throws dev.space.core.error.SpaceException DISK_FULL, PREREQUISITE_MISSING
  public void makeWritable(Path target, int diskMib) {
    try {
      List<Part> parts = pristine.computeIfAbsent(diskMib, this::format);
      try (FileChannel channel =
          FileChannel.open(target, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
        for (Part part : parts) {
          ByteBuffer content = ByteBuffer.wrap(part.content());
          while (content.hasRemaining()) {
            channel.write(content, part.offset() + content.position());
          }
        }
        long size = (long) diskMib << 20;
        if (channel.size() < size) {
          // A file can only be made longer by writing its last byte; mke2fs leaves that a zero.
          channel.write(ByteBuffer.wrap(new byte[1]), size - 1);
        }
      } catch (IOException e) {
        Files.deleteIfExists(target);
        throw e;
      }
    } catch (IOException e) {
      throw failed(target, e);
    }
  }

  private List<Part> format(int mib) {
    Path image = root.resolve("writable-" + mib + ".img");
    try {
      Files.createDirectories(root);
      StagedFile.sweep(root);
      Path tree = Files.createTempDirectory("space-disk-");
      Path aside = StagedFile.asideOf(image);
      try {
        Files.createDirectory(tree.resolve("upper"));
        Files.createDirectory(tree.resolve("work"));
        new Ext4(processes, List.of()).writable(aside, tree, mib);
        return parts(aside);
      } finally {
        StagedFile.remove(tree);
        StagedFile.remove(aside);
      }
    } catch (IOException e) {
      throw failed(image, e);
    }
  }

  private static List<Part> parts(Path image) throws IOException {
    List<Part> parts = new ArrayList<>();
    try (FileChannel channel = FileChannel.open(image)) {
      for (SparseFile.Extent extent : SparseFile.data(image)) {
        ByteBuffer buffer = ByteBuffer.allocate(Math.toIntExact(extent.length()));
        while (buffer.hasRemaining()) {
          if (channel.read(buffer, extent.offset() + buffer.position()) < 0) {
            break;
          }
        }
        parts.add(new Part(extent.offset(), Arrays.copyOf(buffer.array(), buffer.position())));
      }
    }
    return List.copyOf(parts);
  }

  private static SpaceException failed(Path file, IOException e) {
    return Problem.of(DiskFull.codeOf(e), "the disk image " + file + " could not be made")
        .because(e)
        .remedy("Look at the free space of the data directory, and run 'space doctor'.")
        .toException(e);
  }
}
