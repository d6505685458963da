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
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// Finds the parts of a file that aren't holes, by `lseek` with SEEK_DATA and SEEK_HOLE, which the
/// JDK doesn't offer.
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
