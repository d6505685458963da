package dev.space.image;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Comparator;
import java.util.Objects;
import java.util.UUID;
import java.util.stream.Stream;

/// Files and directories that are written aside, as `<name>.<random>.partial`, and renamed when
/// they are whole, so that a reader never finds half of one. What a crash leaves ends in `.partial`
/// and is removed by [#sweep].
final class StagedFile {

  static final String SUFFIX = ".partial";

  private StagedFile() {}

  /// Writes to a path that doesn't exist yet.
  @FunctionalInterface
  interface Writer {
    void write(Path aside) throws IOException;
  }

  static Path asideOf(Path target) {
    return target.resolveSibling(
        target.getFileName() + "." + UUID.randomUUID().toString().substring(0, 8) + SUFFIX);
  }

  /// Makes a file or directory whole or not at all. If another writer was quicker with a directory,
  /// its result stays and ours goes: both are the same by their name.
  static void write(Path target, Writer writer) throws IOException {
    Files.createDirectories(parentOf(target));
    Path aside = asideOf(target);
    try {
      writer.write(aside);
      place(aside, target);
    } finally {
      remove(aside);
    }
  }

  /// Renames what is whole into its place, durably.
  static void place(Path aside, Path target) throws IOException {
    if (Files.isRegularFile(aside)) {
      sync(aside);
    }
    try {
      Files.move(aside, target, StandardCopyOption.ATOMIC_MOVE);
    } catch (FileSystemException e) {
      if (!Files.isDirectory(target)) {
        throw e;
      }
    }
    sync(parentOf(target));
  }

  private static Path parentOf(Path target) {
    return Objects.requireNonNull(
        target.toAbsolutePath().getParent(), "what is written aside lies in a directory");
  }

  static void sync(Path path) throws IOException {
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
      channel.force(true);
    }
  }

  /// Removes a file or tree; links are removed, not followed. What is not there is no error.
  static void remove(Path root) throws IOException {
    if (!Files.exists(root, LinkOption.NOFOLLOW_LINKS)) {
      return;
    }
    try (Stream<Path> tree = Files.walk(root)) {
      for (Path path : tree.sorted(Comparator.reverseOrder()).toList()) {
        Files.deleteIfExists(path);
      }
    }
  }

  /// Removes what a crash left in a directory.
  static void sweep(Path directory) throws IOException {
    if (!Files.isDirectory(directory)) {
      return;
    }
    try (Stream<Path> entries = Files.list(directory)) {
      for (Path entry : entries.filter(p -> p.toString().endsWith(SUFFIX)).toList()) {
        remove(entry);
      }
    }
  }
}
