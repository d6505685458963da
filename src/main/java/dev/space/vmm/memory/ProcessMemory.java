package dev.space.vmm.memory;

import static dev.space.vmm.memory.PageRun.PAGE_BYTES;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;

/// The memory of a guest as its VMM process maps it: a private mapping of an image file. Reading
/// and writing it takes the right to trace the process; `IOException` says that it is lacking.
///
/// @param parts the mapping, in order of offset and without holes
public record ProcessMemory(long pid, long bytes, List<Part> parts) {

  /// @param address where it begins in the process
  /// @param offset where it begins in the image
  public record Part(long address, long offset, long bytes) {}

  /// See the kernel's Documentation/admin-guide/mm/pagemap.rst.
  private static final long PRESENT = 1L << 63;

  private static final long SWAPPED = 1L << 62;
  private static final long FILE_BACKED = 1L << 61;

  private static final int ENTRY_BYTES = 8;
  private static final int ENTRIES_AT_ONCE = 16 * 1024;

  public ProcessMemory {
    parts = List.copyOf(parts);
  }

  /// Finds the mapping of an image in a process.
  ///
  /// @throws IOException when it may not be looked at, or doesn't map all of the image privately
  public static ProcessMemory find(long pid, Path image, long bytes) throws IOException {
    String inode = Files.getAttribute(image, "unix:ino").toString();
    List<Part> parts = new ArrayList<>(1);
    long expected = 0;
    for (String line : Files.readAllLines(Path.of("/proc", Long.toString(pid), "maps"))) {
      // address perms offset dev inode path
      String[] fields = line.split(" +", 6);
      if (fields.length < 5 || !fields[4].equals(inode) || !fields[1].equals("rw-p")) {
        continue;
      }
      int dash = fields[0].indexOf('-');
      long start = Long.parseUnsignedLong(fields[0].substring(0, dash), 16);
      long end = Long.parseUnsignedLong(fields[0].substring(dash + 1), 16);
      long offset = Long.parseLong(fields[2], 16);
      if (offset == expected) {
        parts.add(new Part(start, offset, end - start));
        expected = offset + (end - start);
      }
    }
    if (expected != bytes) {
      throw new IOException(
          "process " + pid + " maps " + expected + " of " + bytes + " bytes of its image");
    }
    return new ProcessMemory(pid, bytes, parts);
  }

  /// The pages that the process has its own copy of: those that were written to.
  public List<PageRun> changed() throws IOException {
    List<PageRun> runs = new ArrayList<>();
    ByteBuffer entries =
        ByteBuffer.allocateDirect(ENTRIES_AT_ONCE * ENTRY_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    try (FileChannel pagemap = open("pagemap", StandardOpenOption.READ)) {
      for (Part part : parts) {
        long page = part.offset() / PAGE_BYTES;
        long last = page + part.bytes() / PAGE_BYTES;
        long at = part.address() / PAGE_BYTES * ENTRY_BYTES;
        while (page < last) {
          entries.clear().limit((int) Math.min(ENTRIES_AT_ONCE, last - page) * ENTRY_BYTES);
          at += readFully(pagemap, at, entries);
          entries.flip();
          while (entries.hasRemaining()) {
            if (copied(entries.getLong())) {
              add(runs, page);
            }
            page++;
          }
        }
      }
    }
    return runs;
  }

  private static boolean copied(long entry) {
    return (entry & (PRESENT | SWAPPED)) != 0 && (entry & FILE_BACKED) == 0;
  }

  private static void add(List<PageRun> runs, long page) {
    if (!runs.isEmpty()) {
      PageRun last = runs.getLast();
      if (last.first() + last.count() == page) {
        runs.set(runs.size() - 1, new PageRun(last.first(), last.count() + 1));
        return;
      }
    }
    runs.add(new PageRun(page, 1));
  }

  /// Finds out whether the process may be read at all.
  public void requireAccess() throws IOException {
    open("pagemap", StandardOpenOption.READ).close();
    open("mem", StandardOpenOption.READ).close();
  }

  /// Writes the changed pages to a change file. The guest must not run meanwhile.
  public void save(Path file) throws IOException {
    List<PageRun> runs = changed();
    try (FileChannel mem = open("mem", StandardOpenOption.READ)) {
      ChangeFile.write(file, bytes, runs, (offset, into) -> readFully(mem, address(offset), into));
    }
  }

  /// Writes all pages to a change file, whatever they were restored from. The guest must not run
  /// meanwhile.
  public void saveAll(Path file) throws IOException {
    List<PageRun> all = List.of(new PageRun(0, bytes / PAGE_BYTES));
    try (FileChannel mem = open("mem", StandardOpenOption.READ)) {
      ChangeFile.write(file, bytes, all, (offset, into) -> readFully(mem, address(offset), into));
    }
  }

  /// Writes the changed pages to their places in a copy of the image and forces it to the disk. The
  /// guest must not run meanwhile.
  public void copyTo(Path copy) throws IOException {
    ByteBuffer buffer = ByteBuffer.allocateDirect(256 * 1024);
    try (FileChannel mem = open("mem", StandardOpenOption.READ);
        FileChannel out = FileChannel.open(copy, StandardOpenOption.WRITE)) {
      for (PageRun run : changed()) {
        long offset = run.first() * PAGE_BYTES;
        long end = offset + run.count() * PAGE_BYTES;
        while (offset < end) {
          buffer.clear().limit((int) Math.min(buffer.capacity(), end - offset));
          readFully(mem, address(offset), buffer);
          buffer.flip();
          while (buffer.hasRemaining()) {
            offset += out.write(buffer, offset);
          }
        }
      }
      out.force(true);
    }
  }

  /// Writes the pages of a change file into the process. The guest must not run meanwhile, and must
  /// never run when this fails.
  public void load(Path file) throws IOException {
    if (ChangeFile.isInState(file)) {
      return;
    }
    try (FileChannel mem = open("mem", StandardOpenOption.WRITE)) {
      ChangeFile.apply(
          file,
          bytes,
          (offset, some) -> {
            long at = address(offset);
            while (some.hasRemaining()) {
              at += mem.write(some, at);
            }
          });
    }
  }

  private long address(long offset) {
    for (Part part : parts) {
      if (offset >= part.offset() && offset < part.offset() + part.bytes()) {
        return part.address() + (offset - part.offset());
      }
    }
    throw new IndexOutOfBoundsException("offset " + offset + " of " + bytes);
  }

  private FileChannel open(String name, StandardOpenOption how) throws IOException {
    return FileChannel.open(Path.of("/proc", Long.toString(pid), name), how);
  }

  private static int readFully(FileChannel channel, long position, ByteBuffer into)
      throws IOException {
    int done = 0;
    while (into.hasRemaining()) {
      int n = channel.read(into, position + done);
      if (n <= 0) {
        throw new IOException("the process's memory ends at " + (position + done));
      }
      done += n;
    }
    return done;
  }
}
