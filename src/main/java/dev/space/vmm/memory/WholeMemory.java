package dev.space.vmm.memory;

import dev.space.core.error.Problem;
import dev.space.host.DiskFull;
import dev.space.host.SparseFile;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/// Makes whole memory files out of an image and a change file.
public final class WholeMemory {

  private WholeMemory() {}

  /// Writes a copy of the image with the changes in it, forced to the disk; an existing target is
  /// replaced.
  ///
  /// @throws dev.space.core.error.SpaceException SNAPSHOT_DAMAGED, DISK_FULL; nothing stays then
  public static void make(Path image, Path changes, Path target) {
    boolean done = false;
    try {
      Files.deleteIfExists(target);
      SparseFile.copy(image, target);
      apply(changes, target);
      done = true;
    } catch (IOException e) {
      throw Problem.of(DiskFull.codeOf(e), "A memory could not be written.")
          .because(String.valueOf(e.getMessage()))
          .toException(e);
    } finally {
      if (!done) {
        target.toFile().delete();
      }
    }
  }

  private static void apply(Path changes, Path target) throws IOException {
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
    }
  }
}
