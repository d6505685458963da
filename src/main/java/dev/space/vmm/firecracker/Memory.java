package dev.space.vmm.firecracker;

import static dev.space.vmm.memory.PageRun.PAGE_BYTES;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.vm.MemoryImage;
import dev.space.host.SparseFile;
import dev.space.vmm.memory.ChangeFile;
import dev.space.vmm.memory.PageRun;
import dev.space.vmm.memory.WholeMemory;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Optional;

/// The memory of one VM, between Firecracker's files and the node's.
///
/// Firecracker saves all of a guest's memory or the pages that were written to since it was loaded
/// or last saved, those into a file with holes where nothing changed. All such saves of one run go
/// into one file, so that it holds what changed since the load. A VM that was itself loaded from
/// changes maps a whole memory that was put together for it; its earlier changes are kept beside.
final class Memory {

  /// While this file is there the saved changes are not whole: a save is under way, or failed, or
  /// took the changes elsewhere.
  private static final String TORN = "torn";

  private static final int BUFFER_PAGES = 64;

  /// Where holes are looked for to know whether they can be relied on.
  private static final long TRIAL_BYTES = 8L << 20;

  private final Ground ground;
  private final long bytes;
  private final Optional<Path> image;

  /// @param bytes size of the memory
  /// @param image what the changes are told from; empty when the VM was booted
  Memory(Ground ground, long bytes, Optional<Path> image) {
    this.ground = ground;
    this.bytes = bytes;
    this.image = image;
  }

  /// Gives a process that is about to load the memory to do it from.
  static void lend(Ground ground, MemoryImage image) throws IOException {
    if (image.changes().isEmpty()) {
      ground.lend(Ground.MEMORY, image.memory());
      return;
    }
    Path own = ground.file(Ground.MEMORY);
    Path changes = image.changes().get();
    WholeMemory.make(image.memory(), changes, own);
    Files.createLink(ground.file(Ground.CHANGES), changes);
    ground.give(Ground.MEMORY, own);
  }

  /// Whether a file system keeps holes of a single page, so that what is no hole was written.
  static boolean keepsHoles(Path directory) throws IOException {
    Path trial = Files.createTempFile(directory, "holes", ".trial");
    try (FileChannel out = FileChannel.open(trial, StandardOpenOption.WRITE)) {
      out.write(ByteBuffer.allocate(1), TRIAL_BYTES - 1);
      ByteBuffer page = ByteBuffer.allocate(PAGE_BYTES);
      for (long at : new long[] {2L * PAGE_BYTES, 5L * PAGE_BYTES, 3L << 20}) {
        out.write(page.clear(), at);
      }
      out.force(true);
      long found = SparseFile.data(trial).stream().mapToLong(SparseFile.Extent::length).sum();
      return found == 4L * PAGE_BYTES;
    } finally {
      Files.deleteIfExists(trial);
    }
  }

  /// Saves all of the memory as a file that has holes where it is zero.
  ///
  /// @param save makes Firecracker save, with its kind of save and the name of the file
  void saveFull(Path target, Save save) throws IOException {
    tear();
    Path full = ground.fresh(Ground.FULL);
    try (FileChannel in = FileChannel.open(full, StandardOpenOption.READ)) {
      save.run("Full", Ground.FULL);
      requireSize(in);
      copyNonZero(in, target);
    } finally {
      ground.drop(Ground.FULL);
    }
  }

  /// What makes Firecracker save.
  @FunctionalInterface
  interface Save {
    void run(String type, String memory) throws IOException;
  }

  /// Saves the pages that differ from the image.
  ///
  /// @param exact whether holes can be relied on
  void saveChanges(Path target, boolean exact, Save save) throws IOException {
    if (image.isEmpty() || !exact || torn()) {
      saveCompared(target, save);
      return;
    }
    Path diff = ground.file(Ground.DIFF);
    if (!Files.exists(diff)) {
      ground.fresh(Ground.DIFF);
    }
    tear();
    try (FileChannel in = FileChannel.open(diff, StandardOpenOption.READ)) {
      save.run("Diff", Ground.DIFF);
      requireSize(in);
      BitSet written = pages(SparseFile.data(diff));
      write(target, in, written);
    }
    Files.deleteIfExists(ground.file(TORN));
  }

  private boolean torn() {
    return Files.exists(ground.file(TORN));
  }

  private void tear() throws IOException {
    if (!torn()) {
      Files.createFile(ground.file(TORN));
    }
  }

  private void write(Path target, FileChannel diff, BitSet written) throws IOException {
    Path before = ground.file(Ground.CHANGES);
    if (!Files.exists(before)) {
      ChangeFile.write(target, bytes, runs(written), (at, into) -> fill(diff, at, into));
      return;
    }
    BitSet all = (BitSet) written.clone();
    for (PageRun run : ChangeFile.runs(before, bytes)) {
      all.set((int) run.first(), (int) (run.first() + run.count()));
    }
    // What the process maps privately is on the disk as it was loaded.
    try (FileChannel own = FileChannel.open(ground.file(Ground.MEMORY))) {
      ChangeFile.write(
          target,
          bytes,
          runs(all),
          (at, into) -> {
            long offset = at;
            while (into.hasRemaining()) {
              // The pieces that are asked for may begin and end within a page.
              int left = PAGE_BYTES - (int) (offset % PAGE_BYTES);
              ByteBuffer piece = into.slice(into.position(), Math.min(left, into.remaining()));
              int length = piece.remaining();
              fill(written.get((int) (offset / PAGE_BYTES)) ? diff : own, offset, piece);
              into.position(into.position() + length);
              offset += length;
            }
          });
    }
  }

  /// Saves all of the memory and writes what differs from the image; without an image, everything.
  private void saveCompared(Path target, Save save) throws IOException {
    tear();
    Path full = ground.fresh(Ground.FULL);
    try (FileChannel in = FileChannel.open(full, StandardOpenOption.READ)) {
      save.run("Full", Ground.FULL);
      requireSize(in);
      if (image.isEmpty()) {
        ChangeFile.writeAll(target, bytes, in);
        return;
      }
      BitSet different = new BitSet();
      try (FileChannel base = FileChannel.open(image.get(), StandardOpenOption.READ)) {
        ByteBuffer one = ByteBuffer.allocateDirect(PAGE_BYTES);
        ByteBuffer other = ByteBuffer.allocateDirect(PAGE_BYTES);
        for (int page = 0; page < bytes / PAGE_BYTES; page++) {
          fill(in, (long) page * PAGE_BYTES, one.clear());
          fill(base, (long) page * PAGE_BYTES, other.clear());
          different.set(page, one.flip().mismatch(other.flip()) >= 0);
        }
      }
      ChangeFile.write(target, bytes, runs(different), (at, into) -> fill(in, at, into));
    } finally {
      ground.drop(Ground.FULL);
    }
  }

  private void requireSize(FileChannel saved) throws IOException {
    if (saved.size() != bytes) {
      throw Problem.of(ErrorCode.VMM_FAILED, "Firecracker saved another memory than asked for.")
          .because(saved.size() + " bytes instead of " + bytes)
          .toException();
    }
  }

  private static BitSet pages(List<SparseFile.Extent> extents) {
    BitSet pages = new BitSet();
    for (SparseFile.Extent extent : extents) {
      long end = extent.offset() + extent.length();
      pages.set((int) (extent.offset() / PAGE_BYTES), (int) ((end + PAGE_BYTES - 1) / PAGE_BYTES));
    }
    return pages;
  }

  private static List<PageRun> runs(BitSet pages) {
    List<PageRun> runs = new ArrayList<>();
    for (int at = pages.nextSetBit(0); at >= 0; ) {
      int end = pages.nextClearBit(at);
      runs.add(new PageRun(at, end - at));
      at = pages.nextSetBit(end);
    }
    return runs;
  }

  private static void fill(FileChannel from, long offset, ByteBuffer into) throws IOException {
    long at = offset;
    while (into.hasRemaining()) {
      int n = from.read(into, at);
      if (n <= 0) {
        throw new IOException("a saved memory ends at " + at);
      }
      at += n;
    }
  }

  private static void copyNonZero(FileChannel in, Path target) throws IOException {
    long size = in.size();
    ByteBuffer buffer = ByteBuffer.allocateDirect(BUFFER_PAGES * PAGE_BYTES);
    ByteBuffer zero = ByteBuffer.allocateDirect(PAGE_BYTES);
    try (FileChannel out =
        FileChannel.open(
            target,
            StandardOpenOption.CREATE,
            StandardOpenOption.WRITE,
            StandardOpenOption.TRUNCATE_EXISTING)) {
      out.write(ByteBuffer.allocate(1), size - 1);
      for (long at = 0; at < size; at += buffer.capacity()) {
        buffer.clear().limit((int) Math.min(buffer.capacity(), size - at));
        fill(in, at, buffer);
        copyNonZero(buffer.flip(), zero, out, at);
      }
      out.force(true);
    }
  }

  /// Pages in a row are written at once.
  private static void copyNonZero(ByteBuffer from, ByteBuffer zero, FileChannel out, long offset)
      throws IOException {
    int start = -1;
    for (int at = 0; at <= from.limit(); at += PAGE_BYTES) {
      boolean full = at < from.limit() && !from.slice(at, PAGE_BYTES).equals(zero.clear());
      if (full && start < 0) {
        start = at;
      } else if (!full && start >= 0) {
        ByteBuffer run = from.slice(start, at - start);
        long to = offset + start;
        while (run.hasRemaining()) {
          to += out.write(run, to);
        }
        start = -1;
      }
    }
  }
}
