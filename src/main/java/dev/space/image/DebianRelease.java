package dev.space.image;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/// Which Debian release templates are made of when their recipe names none.
final class DebianRelease {

  private static final String OTHERWISE = "bookworm";

  private DebianRelease() {}

  /// The host's codename if it is a Debian, so that kernel, tools and image are of one release;
  /// elsewhere Debian 12.
  static String ofHost() {
    return of(Path.of("/etc/os-release"));
  }

  static String of(Path osRelease) {
    try {
      List<String> lines = Files.readAllLines(osRelease);
      if (lines.contains("ID=debian")) {
        return lines.stream()
            .filter(line -> line.startsWith("VERSION_CODENAME="))
            .map(line -> line.substring("VERSION_CODENAME=".length()).replace("\"", ""))
            .filter(name -> !name.isBlank())
            .findFirst()
            .orElse(OTHERWISE);
      }
    } catch (IOException _) {
      // A host that doesn't say what it is.
    }
    return OTHERWISE;
  }
}
