package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongConsumer;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;
import org.apache.commons.compress.archivers.tar.TarConstants;

/// Trees of files as tar streams, made while they are read.
final class TarStreams {

  private static final int PIPE_BYTES = 256 * 1024;

  private TarStreams() {}

  static SpaceException unreadable(Path path, IOException e) {
    return Problem.of(ErrorCode.INVALID_REQUEST, path + " can't be read")
        .because(e)
        .remedy("Make it readable for this user, and leave it unchanged while it is copied.")
        .toException(e);
  }

  /// A folder's content, the folder itself left out.
  static InputStream pack(Path dir) throws IOException {
    return pack(dir, "", _ -> {});
  }

  /// A file or a tree.
  ///
  /// @param name what the root is called in the archive; empty: only what is below it
  /// @param progress gets the number of bytes of files that were packed so far
  static InputStream pack(Path source, String name, LongConsumer progress) throws IOException {
    AtomicReference<IOException> failure = new AtomicReference<>();
    PipedOutputStream into = new PipedOutputStream();
    PipedInputStream out =
        new PipedInputStream(into, PIPE_BYTES) {
          @Override
          public synchronized int read(byte[] bytes, int offset, int length) throws IOException {
            int n = super.read(bytes, offset, length);
            IOException why = failure.get();
            if (n < 0 && why != null) {
              // Half a tree must never look like a whole one.
              throw why;
            }
            return n;
          }
        };
    Thread.ofPlatform()
        .daemon()
        .name("tar")
        .start(
            () -> {
              try (into) {
                write(source, name, into, progress);
              } catch (IOException e) {
                failure.set(e);
              }
            });
    return out;
  }

  private static void write(Path source, String name, OutputStream into, LongConsumer progress)
      throws IOException {
    TarArchiveOutputStream tar = new TarArchiveOutputStream(into, "UTF-8");
    tar.setLongFileMode(TarArchiveOutputStream.LONGFILE_POSIX);
    tar.setBigNumberMode(TarArchiveOutputStream.BIGNUMBER_POSIX);
    tar.setAddPaxHeadersForNonAsciiNames(true);
    long[] packed = {0};
    Files.walkFileTree(
        source,
        new SimpleFileVisitor<>() {
          @Override
          public FileVisitResult preVisitDirectory(Path dir, BasicFileAttributes about)
              throws IOException {
            String entry = nameOf(dir);
            if (!entry.isEmpty()) {
              add(dir, entry + "/", about);
            }
            return FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes about)
              throws IOException {
            add(file, nameOf(file), about);
            return FileVisitResult.CONTINUE;
          }

          private String nameOf(Path path) {
            String below = source.relativize(path).toString();
            return name.isEmpty() ? below : below.isEmpty() ? name : name + "/" + below;
          }

          private void add(Path path, String entryName, BasicFileAttributes about)
              throws IOException {
            TarArchiveEntry entry;
            if (about.isSymbolicLink()) {
              entry = new TarArchiveEntry(entryName, TarConstants.LF_SYMLINK);
              entry.setLinkName(Files.readSymbolicLink(path).toString());
            } else if (about.isDirectory() || about.isRegularFile()) {
              entry = new TarArchiveEntry(entryName);
              entry.setMode(FileModes.of(path, LinkOption.NOFOLLOW_LINKS));
            } else {
              // Sockets, devices and pipes have no content that could be copied.
              return;
            }
            entry.setModTime(about.lastModifiedTime());
            entry.setSize(about.isRegularFile() ? about.size() : 0);
            tar.putArchiveEntry(entry);
            if (about.isRegularFile()) {
              packed[0] += Files.copy(path, tar);
              progress.accept(packed[0]);
            }
            tar.closeArchiveEntry();
          }
        });
    tar.finish();
    tar.flush();
  }
}
