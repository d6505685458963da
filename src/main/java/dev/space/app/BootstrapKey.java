package dev.space.app;

import dev.space.core.access.ApiKeys;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;

/// The first API key: made at the first start and kept, readable for its owner alone, in `api-key`
/// of the data directory, where the command line finds it.
final class BootstrapKey {

  private BootstrapKey() {}

  /// Makes the key if there is none yet and says whether it did.
  static boolean ensure(ApiKeys keys, Path dataDir) {
    return keys.bootstrap()
        .map(
            created -> {
              write(dataDir, created.secret());
              return true;
            })
        .orElse(false);
  }

  private static void write(Path dataDir, String secret) {
    Path file = dataDir.resolve("api-key");
    Path part = dataDir.resolve("api-key.partial");
    try {
      Files.deleteIfExists(part);
      Files.createFile(
          part, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
      Files.writeString(part, secret + "\n");
      Files.move(part, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    } catch (IOException e) {
      throw Problem.of(ErrorCode.PREREQUISITE_MISSING, "The API key can't be written to " + file)
          .because(e.toString())
          .toException(e);
    }
  }
}
