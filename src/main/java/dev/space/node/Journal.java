package dev.space.node;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.nio.file.Files;
import java.nio.file.Path;

/// Writes and reads the entries of VM directories. Entries of VMs aren't forced to the disk: with
/// the power, the VMs they tell of are gone too. What outlives the host (saved state, snapshots)
/// is.
final class Journal {

  static final String FILE = "vm.json";

  private final Folders folders;
  private final FailPoints failPoints;

  Journal(Folders folders, FailPoints failPoints) {
    this.folders = folders;
    this.failPoints = failPoints;
  }

  /// Makes the directory of a new VM with its first entry.
  void begin(VmEntry entry) {
    failPoints.reach(FailPoints.Point.JOURNAL_WRITE);
    Folders.make(folders.vm(entry.id()));
    Records.write(file(entry), entry);
  }

  void write(VmEntry entry) {
    failPoints.reach(FailPoints.Point.JOURNAL_WRITE);
    Records.write(file(entry), entry);
  }

  /// Like `write`, for entries that must survive a loss of power.
  void writeForced(VmEntry entry) {
    write(entry);
    Folders.force(file(entry));
    Folders.force(folders.vm(entry.id()));
  }

  /// @throws dev.space.core.error.SpaceException SNAPSHOT_DAMAGED when the entry can't be used
  static VmEntry read(Path directory) {
    VmEntry entry = Records.read(directory.resolve(FILE), VmEntry.class);
    if (entry.version() != VmEntry.VERSION
        || !directory.getFileName().toString().equals(entry.id())) {
      throw Problem.of(ErrorCode.SNAPSHOT_DAMAGED, directory + " has an entry that isn't its own")
          .because("version " + entry.version() + ", id " + entry.id())
          .toException();
    }
    return entry;
  }

  static boolean exists(Path directory) {
    return Files.exists(directory.resolve(FILE));
  }

  private Path file(VmEntry entry) {
    return folders.vm(entry.id()).resolve(FILE);
  }
}
