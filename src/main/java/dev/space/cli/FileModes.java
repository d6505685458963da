package dev.space.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.util.EnumSet;
import java.util.Set;

/// Permission bits of local files as numbers, such as 0644.
final class FileModes {

  private static final PosixFilePermission[] ALL = PosixFilePermission.values();

  private FileModes() {}

  static int of(Path file, LinkOption... options) throws IOException {
    Set<PosixFilePermission> permissions = Files.getPosixFilePermissions(file, options);
    int mode = 0;
    for (PosixFilePermission permission : ALL) {
      mode = mode << 1 | (permissions.contains(permission) ? 1 : 0);
    }
    return mode;
  }

  static Set<PosixFilePermission> permissions(int mode) {
    Set<PosixFilePermission> permissions = EnumSet.noneOf(PosixFilePermission.class);
    for (int i = 0; i < ALL.length; i++) {
      if ((mode & 1 << (ALL.length - 1 - i)) != 0) {
        permissions.add(ALL[i]);
      }
    }
    return permissions;
  }
}
