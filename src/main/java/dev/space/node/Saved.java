package dev.space.node;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.vm.MemoryImage;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.zip.CRC32C;

/// The saved state of a suspended sandbox: `saved/` in its VM directory. A manifest with checksums
/// tells a whole one from a torn one. One whose disk alone was saved has nothing but the manifest.
final class Saved {

  static final int VERSION = 1;
  private static final String MANIFEST = "manifest.json";
  private static final int BUFFER_BYTES = 256 * 1024;

  /// @param stateSum CRC-32C of the device state
  /// @param changesSum CRC-32C of the memory's changes
  /// @param diskOnly whether there is neither device state nor memory; absent means no
  record Manifest(
      int version,
      String format,
      long stateBytes,
      int stateSum,
      long changesBytes,
      int changesSum,
      long diskBytes,
      Optional<Boolean> diskOnly) {}

  private Saved() {}

  static Path state(Path directory) {
    return directory.resolve("state");
  }

  static Path changes(Path directory) {
    return directory.resolve("changes");
  }

  /// The disk as it was saved, while a wake uses the sandbox's own.
  static Path disk(Path directory) {
    return directory.resolve("disk.img");
  }

  static MemoryImage image(Path directory, Path memory) {
    return new MemoryImage(state(directory), memory, Optional.of(changes(directory)));
  }

  /// Writes the manifest of what was saved into a directory, and makes all of it, and the disk it
  /// goes with, survive a loss of power.
  static void seal(Path directory, Path disk, String format) {
    try {
      Manifest manifest =
          new Manifest(
              VERSION,
              format,
              Files.size(state(directory)),
              sum(state(directory)),
              Files.size(changes(directory)),
              sum(changes(directory)),
              Files.size(disk),
              Optional.empty());
      Records.write(directory.resolve(MANIFEST), manifest);
    } catch (IOException e) {
      throw Folders.failure("Reading back the saved state failed", e);
    }
    Folders.force(state(directory));
    Folders.force(changes(directory));
    Folders.force(disk);
    Folders.force(directory.resolve(MANIFEST));
    Folders.force(directory);
  }

  /// The same for a disk that is saved without memory.
  static void sealDisk(Path directory, Path disk, String format) {
    try {
      Manifest manifest =
          new Manifest(VERSION, format, 0, 0, 0, 0, Files.size(disk), Optional.of(true));
      Records.write(directory.resolve(MANIFEST), manifest);
    } catch (IOException e) {
      throw Folders.failure("Reading back the saved state failed", e);
    }
    Folders.force(disk);
    Folders.force(directory.resolve(MANIFEST));
    Folders.force(directory);
  }

  /// Whether there is a memory to go on with.
  ///
  /// @throws SpaceException SNAPSHOT_DAMAGED when there is no manifest, or not a whole one
  static boolean hasMemory(Path directory) {
    return !Records.read(directory.resolve(MANIFEST), Manifest.class).diskOnly().orElse(false);
  }

  /// @throws SpaceException SNAPSHOT_DAMAGED naming what is not as it was saved
  static void verify(Path directory, Path disk, String format) {
    Manifest manifest = Records.read(directory.resolve(MANIFEST), Manifest.class);
    boolean memory = !manifest.diskOnly().orElse(false);
    if (memory && !manifest.format().equals(format)) {
      throw Problem.of(ErrorCode.SNAPSHOT_DAMAGED, "The saved state is of another VMM version")
          .because("it is in format " + manifest.format() + ", this node has " + format)
          .remedy("Run the version it was saved with; the saved state is kept.")
          .toException();
    }
    try {
      if (memory) {
        check("device state", state(directory), manifest.stateBytes(), manifest.stateSum());
        check("memory", changes(directory), manifest.changesBytes(), manifest.changesSum());
      }
      if (Files.size(disk) != manifest.diskBytes()) {
        throw damaged("disk", "it has " + Files.size(disk) + " bytes, not " + manifest.diskBytes());
      }
    } catch (IOException e) {
      throw Problem.of(ErrorCode.SNAPSHOT_DAMAGED, "The saved state can't be read")
          .because(e.toString())
          .toException(e);
    }
  }

  /// Whether what is there is whole.
  static boolean isWhole(Path directory, Path disk, String format) {
    if (!Files.exists(directory.resolve(MANIFEST))) {
      return false;
    }
    try {
      verify(directory, disk, format);
      return true;
    } catch (SpaceException _) {
      return false;
    }
  }

  private static void check(String what, Path file, long bytes, int sum) throws IOException {
    if (Files.size(file) != bytes) {
      throw damaged(what, "it has " + Files.size(file) + " bytes, not " + bytes);
    }
    if (sum(file) != sum) {
      throw damaged(what, "its checksum is wrong");
    }
  }

  private static SpaceException damaged(String what, String why) {
    return Problem.of(ErrorCode.SNAPSHOT_DAMAGED, "The sandbox's saved " + what + " is damaged")
        .because(why)
        .remedy(
            "Delete the sandbox; a snapshot of it, if there is one, can be the source of another.")
        .toException();
  }

  static int sum(Path file) throws IOException {
    CRC32C crc = new CRC32C();
    ByteBuffer buffer = ByteBuffer.allocateDirect(BUFFER_BYTES);
    try (FileChannel channel = FileChannel.open(file)) {
      while (channel.read(buffer.clear()) >= 0) {
        crc.update(buffer.flip());
      }
    }
    return (int) crc.getValue();
  }
}
