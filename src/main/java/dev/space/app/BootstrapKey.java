package dev.space.app;

import dev.space.core.access.ApiKeys;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.host.PrivateFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/// The first API key: made at the first start and kept, readable for its owner alone, in `api-key`
/// of the data directory, where the command line finds it.
final class BootstrapKey {

  private BootstrapKey() {}

  /// Makes the key if there is none yet and says whether it did.
  static boolean ensure(ApiKeys keys, Path dataDir) {
    return keys.bootstrap(created -> write(dataDir, created.secret())).isPresent();
  }

  private static void write(Path dataDir, String secret) {
    Path file = dataDir.resolve("api-key");
    try {
      PrivateFile.write(file, (secret + "\n").getBytes(StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw Problem.of(ErrorCode.PREREQUISITE_MISSING, "The API key can't be written to " + file)
          .because(e)
          .remedy("Give the service the right to write there, or choose another --data-dir.")
          .toException(e);
    }
  }
}
