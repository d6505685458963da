package dev.space.image;

import dev.space.host.Command;
import dev.space.host.Processes;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/// Where trees with files of many owners are made and removed. Root does so as it is; others in a
/// user namespace in which they are root, and their subordinate ids (subuid(5)) everybody else. In
/// mmdebstrap's own namespace they would be nobody, and shut out of their home directory, which
/// only they may enter.
final class OwnerNamespace {

  private static final Duration REMOVE_MAX = Duration.ofMinutes(10);

  private OwnerNamespace() {}

  /// The words that run a tool in it.
  static List<String> in(List<String> argv) {
    if (isRoot()) {
      return argv;
    }
    List<String> all = new ArrayList<>(List.of("unshare", "--map-root-user", "--map-auto", "--"));
    all.addAll(argv);
    return all;
  }

  /// Removes a file or tree; links are removed, not followed. What is not there is no error.
  static void remove(Processes processes, Path root) throws IOException {
    if (isRoot() || !Files.exists(root, LinkOption.NOFOLLOW_LINKS)) {
      StagedFile.remove(root);
      return;
    }
    // A build that is interrupted leaves nothing behind either.
    boolean interrupted = Thread.interrupted();
    try {
      processes.run(Command.of(REMOVE_MAX, in(List.of("rm", "-rf", "--", root.toString()))));
      // If that didn't, this tells why.
      StagedFile.remove(root);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static boolean isRoot() {
    return "root".equals(System.getProperty("user.name"));
  }
}
