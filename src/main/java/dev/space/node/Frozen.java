package dev.space.node;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.template.Resources;
import dev.space.core.vm.MemoryImage;
import dev.space.node.VmEntry.Origin;
import java.nio.file.Path;
import java.util.Optional;

/// A frozen VM that others are restored from: a base snapshot, or a snapshot of a sandbox. Its
/// files never change.
///
/// @param generation of the frozen guest's last adoption
record Frozen(Path directory, Origin origin, Resources resources, String format, long generation) {

  static final int VERSION = 1;
  private static final String FILE = "frozen.json";

  /// What lies beside the files. It is written last.
  record Record(
      int version, String template, Resources resources, String format, long generation) {}

  static Path state(Path directory) {
    return directory.resolve("state");
  }

  static Path memory(Path directory) {
    return directory.resolve("memory");
  }

  static Path disk(Path directory) {
    return directory.resolve("disk.img");
  }

  static void write(Path directory, Record record) {
    Records.write(directory.resolve(FILE), record);
  }

  /// Makes all of it survive a loss of power.
  static void force(Path directory) {
    Folders.force(state(directory));
    Folders.force(memory(directory));
    Folders.force(disk(directory));
    Folders.force(directory.resolve(FILE));
    Folders.force(directory);
  }

  /// @throws dev.space.core.error.SpaceException SNAPSHOT_DAMAGED
  static Frozen read(Path directory, Origin origin) {
    Record record = Records.read(directory.resolve(FILE), Record.class);
    if (record.version() != VERSION) {
      throw Problem.of(ErrorCode.SNAPSHOT_DAMAGED, directory + " is of version " + record.version())
          .toException();
    }
    return new Frozen(
        directory,
        new Origin(origin.kind(), origin.name(), record.template()),
        record.resources(),
        record.format(),
        record.generation());
  }

  void requireTemplate(String digest) {
    if (!origin.template().equals(digest)) {
      throw Problem.of(ErrorCode.SNAPSHOT_DAMAGED, directory + " is of another template")
          .because(origin.template())
          .toException();
    }
  }

  /// @throws dev.space.core.error.SpaceException SNAPSHOT_DAMAGED when this driver can't restore it
  void requireFormat(String mine) {
    if (!format.equals(mine)) {
      throw Problem.of(ErrorCode.SNAPSHOT_DAMAGED, "The snapshot is of another VMM version")
          .because("it is in format " + format + ", this node has " + mine)
          .remedy("Run the version it was made with, or make the sandbox from its template.")
          .toException();
    }
  }

  MemoryImage image() {
    return new MemoryImage(state(directory), memory(directory), Optional.empty());
  }

  Path disk() {
    return disk(directory);
  }
}
