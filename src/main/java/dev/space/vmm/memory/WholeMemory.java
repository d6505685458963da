package dev.space.vmm.memory;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.host.FileCopies;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/// Makes whole memory files out of an image and a change file.
public final class WholeMemory {

  private final FileCopies copies;

  public WholeMemory(FileCopies copies) {
    this.copies = copies;
  }

  /// Writes a copy of the image with the changes in it, forced to the disk.
  ///
  /// @throws dev.space.core.error.SpaceException SNAPSHOT_DAMAGED, DISK_FULL; nothing stays then
  public void make(Path image, Path changes, Path target) {
    boolean done = false;
    copies.copy(image, target);
    try (FileChannel out = FileChannel.open(target, StandardOpenOption.WRITE)) {
      ChangeFile.apply(
          changes,
          out.size(),
          (offset, bytes) -> {
            long at = offset;
            while (bytes.hasRemaining()) {
              at += out.write(bytes, at);
            }
          });
      out.force(true);
      done = true;
    } catch (IOException e) {
      boolean full = String.valueOf(e.getMessage()).contains("No space left");
      throw Problem.of(
              full ? ErrorCode.DISK_FULL : ErrorCode.INTERNAL, "A memory could not be written.")
          .because(String.valueOf(e.getMessage()))
          .toException(e);
    } finally {
      if (!done) {
        target.toFile().delete();
      }
    }
  }
}
