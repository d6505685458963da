package dev.space.vmm.simulated;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.node.WritableDisks;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/// Disks of simulated VMs: sparse files of the right size, of which the first bytes alone mean
/// anything: a number, the length of what the guest has synced, and that.
public final class SimulatedDisks implements WritableDisks {

  static final int HEAD_BYTES = Long.BYTES + Integer.BYTES;

  @Override
  public void makePristine(Path target, int mib) {
    make(target, ByteBuffer.allocate(HEAD_BYTES), (long) mib << 20);
  }

  @Override
  public void copy(Path source, Path target) {
    ByteBuffer head = ByteBuffer.allocate(HEAD_BYTES);
    long size;
    try (FileChannel from = FileChannel.open(source)) {
      size = from.size();
      from.read(head, 0);
      int synced = head.getInt(Long.BYTES);
      if (synced > 0) {
        head = ByteBuffer.allocate(HEAD_BYTES + synced);
        from.read(head, 0);
      }
    } catch (IOException e) {
      throw failure("Reading the disk " + source + " failed", e);
    }
    make(target, head.flip(), size);
  }

  @Override
  public long occupied(Path file) {
    try {
      return Math.min(Files.size(file), 4096);
    } catch (IOException e) {
      throw failure("Reading the size of " + file + " failed", e);
    }
  }

  private static void make(Path target, ByteBuffer head, long size) {
    try (FileChannel to =
        FileChannel.open(target, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
      to.write(head, 0);
      to.write(ByteBuffer.allocate(1), size - 1);
    } catch (IOException e) {
      throw failure("Making the disk " + target + " failed", e);
    }
  }

  private static SpaceException failure(String what, IOException e) {
    return Problem.of(ErrorCode.INTERNAL, what).because(e.toString()).toException(e);
  }
}
