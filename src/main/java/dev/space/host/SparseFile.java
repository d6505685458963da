package dev.space.host;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;

/// Big files that are mostly holes: what of them is on the disk, and copies that keep the holes.
/// The parts are found by `lseek` with SEEK_DATA and SEEK_HOLE, which the JDK doesn't offer; its
/// own copy fills holes.
@SuppressWarnings("restricted") // Native calls are what this class is for.
public final class SparseFile {

  private static final int SEEK_DATA = 3;
  private static final int SEEK_HOLE = 4;
  private static final int ENXIO = 6;
  private static final int O_CLOEXEC = 0x80000;

  private static final Linker LINKER = Linker.nativeLinker();
  private static final SymbolLookup LIBC = LINKER.defaultLookup();
  private static final MemoryLayout ERRNO_LAYOUT = Linker.Option.captureStateLayout();
  private static final VarHandle ERRNO =
      ERRNO_LAYOUT.varHandle(MemoryLayout.PathElement.groupElement("errno"));
  private static final MethodHandle OPEN =
      LINKER.downcallHandle(
          LIBC.findOrThrow("open"),
          FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT),
          Linker.Option.firstVariadicArg(2));
  private static final MethodHandle CLOSE =
      LINKER.downcallHandle(
          LIBC.findOrThrow("close"),
          FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));
  private static final MethodHandle LSEEK =
      LINKER.downcallHandle(
          LIBC.findOrThrow("lseek"),
          FunctionDescriptor.of(
              ValueLayout.JAVA_LONG,
              ValueLayout.JAVA_INT,
              ValueLayout.JAVA_LONG,
              ValueLayout.JAVA_INT),
          Linker.Option.captureCallState("errno"));

  private SparseFile() {}

  /// A run of bytes that is on the disk.
  public record Extent(long offset, long length) {}

  /// What a file occupies on the disk in bytes, holes left out.
  public static long occupied(Path file) throws IOException {
    return data(file).stream().mapToLong(Extent::length).sum();
  }

  /// Copies a file, hole for hole and within this process: the JDK uses copy_file_range(2), which
  /// shares blocks where the file system can. A copy that failed is removed.
  ///
  /// @param target doesn't exist yet
  public static void copy(Path source, Path target) throws IOException {
    List<Extent> extents = data(source);
    boolean done = false;
    try (FileChannel from = FileChannel.open(source);
        FileChannel to =
            FileChannel.open(target, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
      try {
        for (Extent extent : extents) {
          copy(from, to, extent);
        }
        long size = from.size();
        if (to.size() < size) {
          // A file only gets longer by its last byte, which is zero where a hole ends a file.
          to.write(ByteBuffer.allocate(1), size - 1);
        }
        done = true;
      } finally {
        if (!done) {
          Files.deleteIfExists(target);
        }
      }
    }
  }

  private static void copy(FileChannel from, FileChannel to, Extent extent) throws IOException {
    long end = extent.offset() + extent.length();
    long at = extent.offset();
    to.position(at);
    while (at < end) {
      long n = from.transferTo(at, end - at, to);
      if (n <= 0) {
        throw new IOException("the file ended at byte " + at + " of " + end);
      }
      at += n;
    }
  }

  /// The parts that aren't holes, in order. A file system that knows no holes gives one whole part.
  public static List<Extent> data(Path file) throws IOException {
    long size = Files.size(file);
    List<Extent> extents = new ArrayList<>();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment state = arena.allocate(ERRNO_LAYOUT);
      int fd =
          (int) OPEN.invokeExact(arena.allocateFrom(file.toAbsolutePath().toString()), O_CLOEXEC);
      if (fd < 0) {
        throw new IOException(file + " can't be opened");
      }
      try {
        long at = 0;
        while (at < size) {
          long start = (long) LSEEK.invokeExact(state, fd, at, SEEK_DATA);
          if (start < 0) {
            int errno = (int) ERRNO.get(state, 0L);
            if (errno == ENXIO) {
              break;
            }
            throw new IOException("lseek on " + file + " failed with error " + errno);
          }
          long end = (long) LSEEK.invokeExact(state, fd, start, SEEK_HOLE);
          if (end < 0) {
            throw new IOException("lseek on " + file + " failed");
          }
          extents.add(new Extent(start, end - start));
          at = end;
        }
      } finally {
        int ignored = (int) CLOSE.invokeExact(fd);
      }
      return List.copyOf(extents);
    } catch (IOException | RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IOException("lseek can't be called", e);
    }
  }
}
