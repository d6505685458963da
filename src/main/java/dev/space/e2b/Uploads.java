package dev.space.e2b;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.stream.Stream;

/// What SDKs upload for template builds: archives named by project and hash, for a day.
final class Uploads {

  static final long BYTES_MAX = 256L << 20;
  private static final Duration KEPT = Duration.ofDays(1);
  private static final int FILES_MAX = 200;

  private final Path folder;
  private final InstantSource clock;

  Uploads(Path folder, InstantSource clock) {
    this.folder = folder;
    this.clock = clock;
  }

  private Path file(String project, String hash) {
    if (!hash.matches("[0-9a-f]{16,128}") || !project.matches("[A-Za-z0-9_-]{1,64}")) {
      throw new E2bError(400, "'" + hash + "' is no hash of files");
    }
    return folder.resolve(project + "-" + hash + ".tar");
  }

  boolean has(String project, String hash) {
    return Files.exists(file(project, hash));
  }

  void put(String project, String hash, InputStream body) {
    Path target = file(project, hash);
    try {
      Files.createDirectories(folder);
      sweep();
      Path part = Files.createTempFile(folder, "upload-", ".partial");
      try {
        try (OutputStream out = Files.newOutputStream(part)) {
          byte[] buffer = new byte[64 * 1024];
          long bytes = 0;
          for (int n = body.read(buffer); n >= 0; n = body.read(buffer)) {
            bytes += n;
            if (bytes > BYTES_MAX) {
              throw new E2bError(413, "an upload has at most " + (BYTES_MAX >> 20) + " MiB");
            }
            out.write(buffer, 0, n);
          }
        }
        Files.move(part, target, StandardCopyOption.ATOMIC_MOVE);
      } finally {
        Files.deleteIfExists(part);
      }
    } catch (IOException e) {
      throw failed(e);
    }
  }

  /// @throws E2bError 400 when nothing was uploaded under this hash, or not lately
  InputStream open(String project, String hash) throws IOException {
    Path file = file(project, hash);
    if (!Files.exists(file)) {
      throw new E2bError(400, "the files " + hash + " were not uploaded");
    }
    return Files.newInputStream(file);
  }

  /// A new, empty file that its user removes.
  Path scratch() {
    try {
      Files.createDirectories(folder);
      return Files.createTempFile(folder, "recipe-", ".partial");
    } catch (IOException e) {
      throw failed(e);
    }
  }

  private void sweep() throws IOException {
    FileTime oldest = FileTime.from(clock.instant().minus(KEPT));
    List<Path> all;
    try (Stream<Path> files = Files.list(folder)) {
      all = files.toList();
    }
    int left = 0;
    for (Path file : all) {
      if (Files.getLastModifiedTime(file).compareTo(oldest) < 0) {
        Files.deleteIfExists(file);
      } else {
        left++;
      }
    }
    if (left >= FILES_MAX) {
      throw new E2bError(429, "there are " + left + " uploads of the last day already");
    }
  }

  private static SpaceException failed(IOException e) {
    return Problem.of(ErrorCode.DISK_FULL, "An upload for a template build can't be kept")
        .because(e)
        .remedy("Make room in the service's data directory.")
        .toException(e);
  }
}
