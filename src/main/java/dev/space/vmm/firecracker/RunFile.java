package dev.space.vmm.firecracker;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/// What the next daemon has to know of a run: the image that the VM was restored from. A file with
/// its path; a VM that was booted has none.
final class RunFile {

  private static final String NAME = "image";

  private RunFile() {}

  static void write(Ground ground, Path image) throws IOException {
    Files.writeString(ground.file(NAME), image.toAbsolutePath().toString());
  }

  static Optional<Path> read(Ground ground) throws IOException {
    Path file = ground.file(NAME);
    return Files.exists(file)
        ? Optional.of(Path.of(Files.readString(file).strip()))
        : Optional.empty();
  }
}
