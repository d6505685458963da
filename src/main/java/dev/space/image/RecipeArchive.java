package dev.space.image;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.zip.GZIPInputStream;
import java.util.zip.ZipException;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveInputStream;
import org.apache.commons.compress.archivers.tar.TarConstants;

/// Unpacks a recipe directory that a caller sent as a tar stream. Nothing leaves the directory:
/// absolute paths, `..`, links out of it, hard links, devices and pipes are refused, and nothing is
/// written through a link.
final class RecipeArchive {

  static final long BYTES_MAX = 256L << 20;
  static final int ENTRIES_MAX = 10_000;
  private static final int NAME_CHARS_MAX = 1024;

  private final Path root;
  private long bytes;
  private int entries;

  private RecipeArchive(Path root) {
    this.root = root;
  }

  /// @param tar plain or gzip
  /// @param root an existing, empty directory
  /// @throws SpaceException BODY_TOO_LARGE or MALFORMED_BODY
  static void unpack(InputStream tar, Path root) throws IOException {
    new RecipeArchive(root).unpack(tar);
  }

  private void unpack(InputStream raw) throws IOException {
    BufferedInputStream in = new BufferedInputStream(raw, 64 * 1024);
    in.mark(2);
    boolean gzip = in.read() == 0x1f && in.read() == 0x8b;
    in.reset();
    try (TarArchiveInputStream tar =
        new TarArchiveInputStream(gzip ? new GZIPInputStream(in, 64 * 1024) : in)) {
      for (Optional<TarArchiveEntry> e = next(tar); e.isPresent(); e = next(tar)) {
        if (++entries > ENTRIES_MAX) {
          throw tooLarge(ENTRIES_MAX + " entries");
        }
        put(e.get(), tar);
      }
    } catch (ZipException | EOFException e) {
      throw malformed(e);
    }
    if (entries == 0) {
      throw Problem.of(ErrorCode.MALFORMED_BODY, "the recipe's tar stream is empty").toException();
    }
  }

  private static Optional<TarArchiveEntry> next(TarArchiveInputStream tar) {
    try {
      return Optional.ofNullable(tar.getNextEntry());
    } catch (IOException | IllegalArgumentException e) {
      throw malformed(e);
    }
  }

  private static SpaceException malformed(Exception e) {
    return Problem.of(ErrorCode.MALFORMED_BODY, "the recipe is no tar stream, or ends too early")
        .because(e)
        .toException(e);
  }

  /// Whether an entry is a plain file. The library's own `isFile` says so of devices, too.
  private static boolean isPlainFile(TarArchiveEntry entry) {
    byte kind = entry.getLinkFlag();
    return kind == TarConstants.LF_NORMAL || kind == TarConstants.LF_OLDNORM;
  }

  /// Reads a file's bytes; a stream that ends too early is the sender's fault, not the disk's.
  private static int read(InputStream body, byte[] buffer) {
    try {
      return body.read(buffer);
    } catch (IOException e) {
      throw malformed(e);
    }
  }

  private void put(TarArchiveEntry entry, InputStream body) throws IOException {
    String name = entry.getName();
    Path target = inside(name);
    if (target.equals(root)) {
      return;
    }
    refuseThroughLink(target, name);
    if (entry.isDirectory()) {
      if (Files.exists(target, LinkOption.NOFOLLOW_LINKS)
          && !Files.isDirectory(target, LinkOption.NOFOLLOW_LINKS)) {
        throw refused(name, "stands there twice");
      }
      Files.createDirectories(target);
    } else if (entry.isSymbolicLink()) {
      link(entry, target);
    } else if (isPlainFile(entry)) {
      file(entry, target, body);
    } else {
      throw refused(name, "is neither file, directory nor symbolic link");
    }
  }

  private void file(TarArchiveEntry entry, Path target, InputStream body) throws IOException {
    createParent(target);
    if (Files.exists(target, LinkOption.NOFOLLOW_LINKS)) {
      throw refused(entry.getName(), "stands there twice");
    }
    try (OutputStream out = Files.newOutputStream(target)) {
      byte[] buffer = new byte[64 * 1024];
      for (int n = read(body, buffer); n >= 0; n = read(body, buffer)) {
        bytes += n;
        if (bytes > BYTES_MAX) {
          throw tooLarge((BYTES_MAX >> 20) + " MiB");
        }
        out.write(buffer, 0, n);
      }
    }
    Files.setPosixFilePermissions(target, permissions(entry.getMode()));
  }

  private void link(TarArchiveEntry entry, Path target) throws IOException {
    createParent(target);
    String to = entry.getLinkName();
    Path resolved = target.resolveSibling(to).normalize();
    if (to.startsWith("/") || !resolved.startsWith(root)) {
      throw refused(entry.getName(), "links out of the recipe directory");
    }
    if (Files.exists(target, LinkOption.NOFOLLOW_LINKS)) {
      throw refused(entry.getName(), "stands there twice");
    }
    Files.createSymbolicLink(target, Path.of(to));
  }

  private static void createParent(Path target) throws IOException {
    Path parent = target.getParent();
    if (parent != null) {
      Files.createDirectories(parent);
    }
  }

  private Path inside(String name) {
    if (name.length() > NAME_CHARS_MAX || name.indexOf('\0') >= 0) {
      throw refused(name.substring(0, Math.min(60, name.length())), "has no usable name");
    }
    if (name.startsWith("/") || List.of(name.split("/")).contains("..")) {
      throw refused(name, "would leave the recipe directory");
    }
    Path target = root.resolve(name).normalize();
    if (!target.startsWith(root)) {
      throw refused(name, "would leave the recipe directory");
    }
    return target;
  }

  private void refuseThroughLink(Path target, String name) {
    Path at = root;
    for (Path part : root.relativize(target)) {
      at = at.resolve(part);
      if (!at.equals(target) && Files.isSymbolicLink(at)) {
        throw refused(name, "would be written through a symbolic link");
      }
    }
  }

  private static Set<PosixFilePermission> permissions(int mode) {
    Set<PosixFilePermission> set = EnumSet.noneOf(PosixFilePermission.class);
    PosixFilePermission[] fromHighest = {
      PosixFilePermission.OWNER_READ,
      PosixFilePermission.OWNER_WRITE,
      PosixFilePermission.OWNER_EXECUTE,
      PosixFilePermission.GROUP_READ,
      PosixFilePermission.GROUP_WRITE,
      PosixFilePermission.GROUP_EXECUTE,
      PosixFilePermission.OTHERS_READ,
      PosixFilePermission.OTHERS_WRITE,
      PosixFilePermission.OTHERS_EXECUTE
    };
    for (int i = 0; i < fromHighest.length; i++) {
      if ((mode & (0400 >> i)) != 0) {
        set.add(fromHighest[i]);
      }
    }
    set.add(PosixFilePermission.OWNER_READ);
    set.add(PosixFilePermission.OWNER_WRITE);
    return set;
  }

  private static SpaceException refused(String name, String why) {
    return Problem.of(ErrorCode.MALFORMED_BODY, "the recipe's entry '" + name + "' " + why)
        .remedy("Send the recipe directory itself, with relative paths, files and directories.")
        .toException();
  }

  private static SpaceException tooLarge(String limit) {
    return Problem.of(ErrorCode.BODY_TOO_LARGE, "the recipe directory has more than " + limit)
        .remedy("Let 'run' fetch large files, or put them into a template of their own.")
        .toException();
  }
}
