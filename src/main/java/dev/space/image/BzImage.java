package dev.space.image;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/// Reads the boot header of an x86 kernel (the kernel's Documentation/arch/x86/boot.rst).
final class BzImage {

  private static final int SECTOR = 512;
  private static final int SETUP_SECTORS = 0x1f1;
  private static final int BOOT_FLAG = 0x1fe;
  private static final int MAGIC = 0x202;
  private static final int VERSION_TEXT = 0x20e;
  private static final int PAYLOAD_OFFSET = 0x248;
  private static final int PAYLOAD_LENGTH = 0x24c;
  private static final int HEADER_BYTES = 0x268;
  private static final int VERSION_BYTES_MAX = 256;

  private BzImage() {}

  /// Where the compressed kernel lies in the file.
  record Payload(long offset, long length) {}

  static boolean isBzImage(Path file) throws IOException {
    try {
      ByteBuffer header = read(file, 0, HEADER_BYTES);
      return Short.toUnsignedInt(header.getShort(BOOT_FLAG)) == 0xaa55
          && header.getInt(MAGIC) == 0x53726448;
    } catch (EOFException _) {
      return false;
    }
  }

  /// The kernel's release, the first word of its version text.
  static String release(Path file) throws IOException {
    ByteBuffer header = read(file, 0, HEADER_BYTES);
    int at = Short.toUnsignedInt(header.getShort(VERSION_TEXT)) + SECTOR;
    byte[] text = read(file, at, VERSION_BYTES_MAX).array();
    int end = 0;
    while (end < text.length && text[end] > ' ') {
      end++;
    }
    return new String(text, 0, end, StandardCharsets.US_ASCII);
  }

  static Payload payload(Path file) throws IOException {
    ByteBuffer header = read(file, 0, HEADER_BYTES);
    int sectors = Byte.toUnsignedInt(header.get(SETUP_SECTORS));
    long start = (long) SECTOR * ((sectors == 0 ? 4 : sectors) + 1);
    return new Payload(
        start + Integer.toUnsignedLong(header.getInt(PAYLOAD_OFFSET)),
        Integer.toUnsignedLong(header.getInt(PAYLOAD_LENGTH)));
  }

  private static ByteBuffer read(Path file, long at, int length) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(length).order(ByteOrder.LITTLE_ENDIAN);
    try (FileChannel channel = FileChannel.open(file)) {
      while (bytes.hasRemaining()) {
        if (channel.read(bytes, at + bytes.position()) < 0) {
          throw new EOFException(file + " ends inside its header");
        }
      }
    }
    return bytes.flip().order(ByteOrder.LITTLE_ENDIAN);
  }
}
