package dev.space.host;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/// Copies of big, sparse files: shared blocks where the file system can, holes kept elsewhere.
public final class FileCopies {

  private static final Duration DEADLINE = Duration.ofMinutes(30);

  private final Processes processes;

  public FileCopies(Processes processes) {
    this.processes = processes;
  }

  /// Copies a file; an existing target is replaced.
  ///
  /// @throws dev.space.core.error.SpaceException DISK_FULL, INTERNAL; a part that was written is
  ///   removed
  public void copy(Path from, Path to) {
    // cp(1) clones with FICLONE and else walks SEEK_DATA; the JDK's own copy fills holes on ext4.
    Command cp =
        Command.of(
            List.of(
                "cp",
                "--reflink=auto",
                "--sparse=auto",
                "--no-target-directory",
                "--",
                from.toString(),
                to.toString()));
    boolean done = false;
    try {
      Processes.Outcome outcome = processes.run(cp, DEADLINE);
      if (!outcome.ok()) {
        throw failure(from, outcome.stderr().strip());
      }
      done = true;
    } finally {
      if (!done) {
        to.toFile().delete();
      }
    }
  }

  private static SpaceException failure(Path from, String message) {
    boolean full = message.contains("No space left") || message.contains("quota exceeded");
    return Problem.of(
            full ? ErrorCode.DISK_FULL : ErrorCode.INTERNAL,
            "'" + from.getFileName() + "' could not be copied.")
        .because(message)
        .toException();
  }
}
