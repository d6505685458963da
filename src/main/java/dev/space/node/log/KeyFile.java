package dev.space.node.log;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.session.AttachmentToken;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.Set;

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
        write(file, key);
        return key;
      }
    } catch (IOException e) {
      throw Problem.of(ErrorCode.INTERNAL, "The key of the attachment tokens can't be had.")
          .because(e.toString())
          .remedy("Give the service the right to read and write " + file + ".")
          .toException(e);
    }
  }

  /// Written aside and renamed: a crash leaves no part of a key.
  private static void write(Path file, byte[] key) throws IOException {
    Path beside = file.resolveSibling(file.getFileName() + ".new");
    Files.deleteIfExists(beside);
    var owner = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
    try (var out =
        Files.newByteChannel(
            beside, Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE), owner)) {
      out.write(java.nio.ByteBuffer.wrap(key));
    }
    Files.move(beside, file, StandardCopyOption.ATOMIC_MOVE);
  }
}
