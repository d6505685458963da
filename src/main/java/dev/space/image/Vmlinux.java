package dev.space.image;

import com.github.luben.zstd.ZstdInputStream;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.host.DiskFull;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.GZIPInputStream;
import org.apache.commons.compress.compressors.lz4.BlockLZ4CompressorInputStream;
import org.tukaani.xz.XZInputStream;

/// The uncompressed kernel out of a bzImage, an ELF file, which is what Firecracker boots. The boot
/// header says where the compressed one lies; Debian 12 uses LZ4, others gzip, xz or zstd.
final class Vmlinux {

  private static final int LZ4_LEGACY = 0x184c2102;
  private static final int XZ = 0x587a37fd;
  private static final int ZSTD = 0xfd2fb528;
  private static final int GZIP = 0x8b1f;
  private static final int ELF = 0x464c457f;
  private static final long BYTES_MAX = 512L << 20;
  private static final int LZ4_BLOCK_BYTES_MAX = 16 << 20;

  private Vmlinux() {}

  /// Writes the kernel beside others in a directory, named by the bzImage's hash, unless it is
  /// there.
  ///
  /// @throws dev.space.core.error.SpaceException PREREQUISITE_MISSING when the kernel is damaged or
  ///   compressed in another way
  static Path extract(GuestKernel kernel, Path directory) {
    Path target = directory.resolve("vmlinux-" + kernel.sha256().substring(0, 16));
    try {
      if (!Files.exists(target)) {
        StagedFile.write(target, aside -> write(kernel.image(), aside));
      }
      return target;
    } catch (IOException e) {
      throw Problem.of(
              DiskFull.isSaidBy(e) ? ErrorCode.DISK_FULL : ErrorCode.PREREQUISITE_MISSING,
              "no uncompressed kernel can be had from " + kernel.image())
          .because(e)
          .remedy(
              "Remove the folder 'kernel' of the data directory and run 'space setup', which fetches"
                  + " it again; or give another kernel.")
          .toException(e);
    }
  }

  private static void write(Path bzImage, Path target) throws IOException {
    BzImage.Payload payload = BzImage.payload(bzImage);
    if (payload.length() < 8 || payload.offset() + payload.length() > Files.size(bzImage)) {
      throw new IOException("its payload lies outside of the file");
    }
    byte[] bytes = new byte[Math.toIntExact(payload.length())];
    try (FileChannel channel = FileChannel.open(bzImage)) {
      channel.position(payload.offset());
      new DataInputStream(Channels.newInputStream(channel)).readFully(bytes);
    }
    ByteBuffer view = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    boolean gzip = (view.getInt(0) & 0xffff) == GZIP;
    // All but gzip, which has it itself, are followed by their uncompressed size.
    int compressed = gzip ? bytes.length : bytes.length - 4;
    long expected = Integer.toUnsignedLong(view.getInt(bytes.length - 4));
    try (InputStream raw = new ByteArrayInputStream(bytes, 0, compressed);
        OutputStream out = Files.newOutputStream(target)) {
      switch (view.getInt(0)) {
        case LZ4_LEGACY -> lz4(bytes, compressed, out);
        case XZ -> copy(new XZInputStream(raw), out);
        case ZSTD -> copy(new ZstdInputStream(raw), out);
        default -> {
          if (!gzip) {
            throw new IOException(
                "its payload is compressed in an unknown way: 0x"
                    + Integer.toHexString(view.getInt(0)));
          }
          copy(new GZIPInputStream(raw), out);
        }
      }
    }
    long size = Files.size(target);
    if (size != expected) {
      throw new IOException("it unpacks to " + size + " bytes instead of " + expected);
    }
    ByteBuffer magic = ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN);
    try (FileChannel channel = FileChannel.open(target)) {
      if (channel.read(magic, 0) != 4 || magic.getInt(0) != ELF) {
        throw new IOException("its payload is no ELF file");
      }
    }
  }

  /// LZ4's legacy format: blocks, each after its length, of up to 8 MiB uncompressed.
  private static void lz4(byte[] bytes, int end, OutputStream out) throws IOException {
    ByteBuffer view = ByteBuffer.wrap(bytes, 0, end).order(ByteOrder.LITTLE_ENDIAN);
    view.getInt();
    while (view.remaining() > 4) {
      int length = view.getInt();
      if (length == LZ4_LEGACY) {
        continue;
      }
      if (length <= 0 || length > Math.min(LZ4_BLOCK_BYTES_MAX, view.remaining())) {
        throw new IOException("an LZ4 block has a length of " + length);
      }
      copy(
          new BlockLZ4CompressorInputStream(
              new ByteArrayInputStream(bytes, view.position(), length)),
          out);
      view.position(view.position() + length);
    }
  }

  private static void copy(InputStream in, OutputStream out) throws IOException {
    try (in) {
      byte[] buffer = new byte[64 * 1024];
      long total = 0;
      for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
        total += n;
        if (total > BYTES_MAX) {
          throw new IOException("it unpacks to more than any kernel");
        }
        out.write(buffer, 0, n);
      }
    }
  }
}
