package dev.space.app;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The data directory, held by one daemon at a time.
public final class DataDirectory implements AutoCloseable {

  /// `sun_path` is 108 bytes; the longest socket is `/vms/<20 characters>/agent.sock`.
  static final int PATH_BYTES_MAX = 107 - "/vms/01234567890123456789/agent.sock".length();

  private final Path path;
  private final FileChannel lockFile;

  private DataDirectory(Path path, FileChannel lockFile) {
    this.path = path;
    this.lockFile = lockFile;
  }

  /// Where data is kept when nothing says otherwise.
  public static Path defaultPath(Map<String, String> environment) {
    if ("root".equals(System.getProperty("user.name"))) {
      return Path.of("/var/lib/space");
    }
    String xdg = environment.get("XDG_DATA_HOME");
    Path base =
        xdg != null && !xdg.isBlank()
            ? Path.of(xdg)
            : Path.of(System.getProperty("user.home"), ".local", "share");
    return base.resolve("space");
  }

  /// Makes the directory if need be and takes its lock.
  ///
  /// @throws dev.space.core.error.SpaceException PREREQUISITE_MISSING when it can't be used,
  ///   CONFLICT when another daemon holds it
  public static DataDirectory open(Path path) {
    if (path.toString().getBytes(java.nio.charset.StandardCharsets.UTF_8).length > PATH_BYTES_MAX) {
      throw Problem.of(
              ErrorCode.PREREQUISITE_MISSING, "The data directory's path is too long: " + path)
          .because("unix sockets below it would be longer than the 108 bytes the kernel allows")
          .remedy("Choose one of at most " + PATH_BYTES_MAX + " bytes with --data-dir.")
          .toException();
    }
    try {
      Files.createDirectories(
          path, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx--x--x")));
      for (String name : List.of("space.db", "space.db-wal", "space.db-shm")) {
        hide(path.resolve(name), name.equals("space.db"));
      }
      FileChannel channel =
          FileChannel.open(
              path.resolve("daemon.lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
      if (lock(channel) == null) {
        channel.close();
        throw Problem.of(ErrorCode.CONFLICT, "Another daemon uses the data directory " + path)
            .remedy("Use that one, stop it, or choose another directory with --data-dir.")
            .toException();
      }
      return new DataDirectory(path, channel);
    } catch (IOException e) {
      throw Problem.of(
              ErrorCode.PREREQUISITE_MISSING, "The data directory " + path + " can't be used")
          .because(e)
          .remedy("Make it writable for this user, or choose another with --data-dir.")
          .toException(e);
    }
  }

  /// Keeps a file for its owner alone: others may pass through the directory, as VM processes must.
  /// SQLite gives its side files the permissions of the database.
  private static void hide(Path file, boolean make) throws IOException {
    Set<PosixFilePermission> mine = PosixFilePermissions.fromString("rw-------");
    if (Files.exists(file)) {
      Files.setPosixFilePermissions(file, mine);
    } else if (make) {
      Files.createFile(file, PosixFilePermissions.asFileAttribute(mine));
    }
  }

  private static @Nullable FileLock lock(FileChannel channel) throws IOException {
    try {
      return channel.tryLock();
    } catch (OverlappingFileLockException e) {
      return null;
    }
  }

  public Path path() {
    return path;
  }

  @Override
  public void close() {
    try {
      lockFile.close();
    } catch (IOException _) {
      // The lock goes with the process at the latest.
    }
  }
}
