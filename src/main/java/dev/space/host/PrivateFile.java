package dev.space.host;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/// Files that hold secrets.
public final class PrivateFile {

  private PrivateFile() {}

  /// Writes a file that only its owner reads, at no moment anybody else. It is written aside,
  /// forced to the disk and renamed: a crash leaves no part of it.
  public static void write(Path file, byte[] content) throws IOException {
    Path aside = file.resolveSibling(file.getFileName() + ".partial");
    Files.deleteIfExists(aside);
    var owner = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
    try (FileChannel out =
        FileChannel.open(
            aside, Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE), owner)) {
      ByteBuffer rest = ByteBuffer.wrap(content);
      while (rest.hasRemaining()) {
        out.write(rest);
      }
      out.force(true);
    }
    Files.move(aside, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
  }
}
