package dev.space.node.log;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.session.AttachmentToken;
import dev.space.host.PrivateFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.SecureRandom;

/// The key that signs attachment tokens: a file that only its owner reads.
public final class KeyFile {

  private KeyFile() {}

  /// Reads the key, or makes one when there is none.
  public static byte[] readOrMake(Path file, SecureRandom random) {
    try {
      try {
        return Files.readAllBytes(file);
      } catch (NoSuchFileException _) {
        byte[] key = new byte[AttachmentToken.KEY_BYTES];
        random.nextBytes(key);
        PrivateFile.write(file, key);
        return key;
      }
    } catch (IOException e) {
      throw Problem.of(ErrorCode.INTERNAL, "The key of the attachment tokens can't be had.")
          .because(e.toString())
          .remedy("Give the service the right to read and write " + file + ".")
          .toException(e);
    }
  }
}
