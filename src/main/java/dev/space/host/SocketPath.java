package dev.space.host;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/// Paths of unix sockets, which the kernel bounds.
public final class SocketPath {

  /// Longest path (sun_path without its final zero), in bytes.
  private static final int BYTES_MAX = 107;

  private SocketPath() {}

  /// The path, made absolute.
  ///
  /// @throws dev.space.core.error.SpaceException VMM_FAILED when it is too long
  public static Path of(Path socket) {
    Path path = socket.toAbsolutePath();
    int bytes = path.toString().getBytes(StandardCharsets.UTF_8).length;
    if (bytes > BYTES_MAX) {
      throw Problem.of(ErrorCode.VMM_FAILED, "The path '" + path + "' is too long for a socket.")
          .because(bytes + " bytes, at most " + BYTES_MAX)
          .remedy("Use a data directory with a shorter path.")
          .toException();
    }
    return path;
  }
}
