package dev.space.vmm.memory;

import static dev.space.vmm.memory.PageRun.PAGE_BYTES;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;

/// The pages in which a guest's memory differs from its image, as one file.
///
/// Little-endian: magic, version, flags, memory size, number of runs, number of pages; then each
/// run as first page and count; then the pages; then a CRC-32C of all before it.
public final class ChangeFile {

  private static final long MAGIC = 0x31474843_43415053L; // "SPACCHG1"
  private static final int VERSION = 1;

  /// The state file holds the memory as well; there are no pages here.
  private static final int IN_STATE = 1;

  private static final int HEADER_BYTES = 40;
  private static final int FLAGS_OFFSET = 12;
  private static final int RUN_BYTES = 16;
  private static final int TRAILER_BYTES = 4;
  private static final int BUFFER_BYTES = 256 * 1024;

  /// Largest memory an image may have: the largest shape of a sandbox.
  private static final long MEMORY_BYTES_MAX = 1L << 40;

  private ChangeFile() {}

  /// Gives the bytes of a memory.
  @FunctionalInterface
  public interface Source {
    /// Fills the buffer's remaining space from this offset on.
    void read(long offset, ByteBuffer into) throws IOException;
  }

  /// Takes the bytes of a memory.
  @FunctionalInterface
  public interface Sink {
    /// Takes all of the buffer's remaining bytes to this offset.
    void write(long offset, ByteBuffer bytes) throws IOException;
  }

  /// Writes a change file and forces it to the disk.
  public static void write(Path file, long memoryBytes, List<PageRun> runs, Source source)
      throws IOException {
    long pages = runs.stream().mapToLong(PageRun::count).sum();
    try (Out out = new Out(file)) {
      out.header(memoryBytes, 0, runs.size(), pages);
      for (PageRun run : runs) {
        out.room(RUN_BYTES).putLong(run.first()).putLong(run.count());
      }
      for (PageRun run : runs) {
        long offset = run.first() * PAGE_BYTES;
        long end = offset + run.count() * PAGE_BYTES;
        while (offset < end) {
          int n = (int) Math.min(end - offset, out.room(PAGE_BYTES).remaining());
          out.fill(source, offset, n);
          offset += n;
        }
      }
      out.end();
    }
  }

  /// Writes a change file that holds every page of a memory that is a file.
  public static void writeAll(Path file, long memoryBytes, FileChannel memory) throws IOException {
    write(
        file,
        memoryBytes,
        List.of(new PageRun(0, memoryBytes / PAGE_BYTES)),
        (offset, into) -> {
          long at = offset;
          while (into.hasRemaining()) {
            int n = memory.read(into, at);
            if (n < 0) {
              return;
            }
            at += n;
          }
        });
  }

  /// Writes a change file that says that the state file holds all of the memory.
  public static void writeInState(Path file, long memoryBytes) throws IOException {
    try (Out out = new Out(file)) {
      out.header(memoryBytes, IN_STATE, 0, 0);
      out.end();
    }
  }

  /// Whether the state file holds the memory, so that there is nothing to put in place.
  public static boolean isInState(Path file) throws IOException {
    try (In in = new In(file)) {
      return in.size == HEADER_BYTES + TRAILER_BYTES
          && (in.need(HEADER_BYTES).getInt(FLAGS_OFFSET) & IN_STATE) != 0;
    }
  }

  /// Gives every changed page to the sink, in order. What the sink took is only good when this
  /// returns: the checksum is at the end.
  ///
  /// @return bytes given
  /// @throws dev.space.core.error.SpaceException SNAPSHOT_DAMAGED when the file isn't whole, or is
  ///   of a memory of another size
  public static long apply(Path file, long memoryBytes, Sink sink) throws IOException {
    try (In in = new In(file)) {
      List<PageRun> runs = runs(in, file, memoryBytes);
      for (PageRun run : runs) {
        give(in, run, sink);
      }
      int crc = (int) in.crc.getValue();
      if (in.need(TRAILER_BYTES).getInt() != crc) {
        throw damaged(file, "its checksum is wrong");
      }
      return runs.stream().mapToLong(PageRun::count).sum() * PAGE_BYTES;
    } catch (EOFException _) {
      throw damaged(file, "it is cut off");
    }
  }

  /// Which pages a file holds, in order. Its checksum is not looked at.
  ///
  /// @throws dev.space.core.error.SpaceException SNAPSHOT_DAMAGED when that can't be told, or it is
  ///   of a memory of another size
  public static List<PageRun> runs(Path file, long memoryBytes) throws IOException {
    try (In in = new In(file)) {
      return runs(in, file, memoryBytes);
    } catch (EOFException _) {
      throw damaged(file, "it is cut off");
    }
  }

  private static List<PageRun> runs(In in, Path file, long memoryBytes) throws IOException {
    ByteBuffer header = in.need(HEADER_BYTES);
    if (header.getLong() != MAGIC || header.getInt() != VERSION) {
      throw damaged(file, "it is no change file of version " + VERSION);
    }
    int flags = header.getInt();
    long memory = header.getLong();
    long runCount = header.getLong();
    long pages = header.getLong();
    if (memory != memoryBytes || memory <= 0 || memory > MEMORY_BYTES_MAX) {
      throw damaged(file, "it is of a memory of " + memory + " bytes");
    }
    long pagesMax = memory / PAGE_BYTES;
    if ((flags & ~IN_STATE) != 0
        || runCount < 0
        || pages < runCount
        || pages > pagesMax
        || in.size != HEADER_BYTES + runCount * RUN_BYTES + pages * PAGE_BYTES + TRAILER_BYTES) {
      throw damaged(file, "its size doesn't fit its header");
    }
    return runs(in, file, runCount, pages, pagesMax);
  }

  private static List<PageRun> runs(In in, Path file, long count, long pages, long pagesMax)
      throws IOException {
    List<PageRun> runs = new ArrayList<>((int) Math.min(count, 1 << 20));
    long next = 0;
    long sum = 0;
    for (long i = 0; i < count; i++) {
      ByteBuffer entry = in.need(RUN_BYTES);
      PageRun run = new PageRun(entry.getLong(), entry.getLong());
      if (run.first() < next || run.count() < 1 || run.count() > pagesMax - run.first()) {
        throw damaged(file, "its list of pages is out of order");
      }
      next = run.first() + run.count();
      sum += run.count();
      runs.add(run);
    }
    if (sum != pages) {
      throw damaged(file, "its list of pages is not whole");
    }
    return runs;
  }

  private static void give(In in, PageRun run, Sink sink) throws IOException {
    long offset = run.first() * PAGE_BYTES;
    long end = offset + run.count() * PAGE_BYTES;
    while (offset < end) {
      ByteBuffer some = in.some(end - offset);
      int n = some.remaining();
      sink.write(offset, some);
      offset += n;
    }
  }

  private static SpaceException damaged(Path file, String why) {
    return Problem.of(ErrorCode.SNAPSHOT_DAMAGED, "'" + file.getFileName() + "' is damaged.")
        .because(why)
        .toException();
  }

  private static ByteBuffer buffer() {
    return ByteBuffer.allocateDirect(BUFFER_BYTES).order(ByteOrder.LITTLE_ENDIAN);
  }

  /// Buffered, checksummed output.
  private static final class Out implements AutoCloseable {
    private final FileChannel channel;
    private final ByteBuffer buffer = buffer();
    private final CRC32C crc = new CRC32C();

    Out(Path file) throws IOException {
      channel =
          FileChannel.open(
              file,
              StandardOpenOption.CREATE,
              StandardOpenOption.WRITE,
              StandardOpenOption.TRUNCATE_EXISTING);
    }

    void header(long memoryBytes, int flags, long runs, long pages) throws IOException {
      room(HEADER_BYTES).putLong(MAGIC).putInt(VERSION).putInt(flags);
      buffer.putLong(memoryBytes).putLong(runs).putLong(pages);
    }

    ByteBuffer room(int bytes) throws IOException {
      if (buffer.remaining() < bytes) {
        flush();
      }
      return buffer;
    }

    void fill(Source source, long offset, int bytes) throws IOException {
      ByteBuffer part = buffer.slice(buffer.position(), bytes);
      source.read(offset, part);
      if (part.hasRemaining()) {
        throw new EOFException("the memory ends at " + (offset + part.position()));
      }
      buffer.position(buffer.position() + bytes);
    }

    private void flush() throws IOException {
      buffer.flip();
      crc.update(buffer.duplicate());
      while (buffer.hasRemaining()) {
        channel.write(buffer);
      }
      buffer.clear();
    }

    void end() throws IOException {
      flush();
      buffer.putInt((int) crc.getValue());
      flush();
      channel.force(true);
    }

    @Override
    public void close() throws IOException {
      channel.close();
    }
  }

  /// Buffered, checksummed input.
  private static final class In implements AutoCloseable {
    private final FileChannel channel;
    private final long size;
    private final ByteBuffer buffer = buffer().limit(0);
    private final CRC32C crc = new CRC32C();

    In(Path file) throws IOException {
      channel = FileChannel.open(file, StandardOpenOption.READ);
      size = channel.size();
    }

    /// The next bytes, exactly so many; they count towards the checksum.
    ByteBuffer need(int bytes) throws IOException {
      while (buffer.remaining() < bytes) {
        buffer.compact();
        int n = channel.read(buffer);
        buffer.flip();
        if (n < 0) {
          throw new EOFException();
        }
      }
      return taken(bytes);
    }

    /// The next bytes, at least one and at most so many.
    ByteBuffer some(long atMost) throws IOException {
      if (!buffer.hasRemaining()) {
        buffer.clear();
        int n = channel.read(buffer);
        buffer.flip();
        if (n < 0) {
          throw new EOFException();
        }
      }
      return taken((int) Math.min(atMost, buffer.remaining()));
    }

    private ByteBuffer taken(int bytes) {
      ByteBuffer part = buffer.slice(buffer.position(), bytes).order(ByteOrder.LITTLE_ENDIAN);
      crc.update(part.duplicate());
      buffer.position(buffer.position() + bytes);
      return part;
    }

    @Override
    public void close() throws IOException {
      channel.close();
    }
  }
}
