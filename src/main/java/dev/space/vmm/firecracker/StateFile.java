package dev.space.vmm.firecracker;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.vmm.firecracker.FirecrackerSettings.DiskRate;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.zip.CRC32C;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.json.JsonMapper;

/// The saved device state of a VM: Firecracker's own state file behind a manifest that says what it
/// is bound to. One file, so that neither is ever without the other.
///
/// Big-endian: magic, length of the manifest, the manifest as JSON, Firecracker's state, a CRC-32C
/// of all before it.
final class StateFile {

  private static final long MAGIC = 0x5350_4143_4546_4331L; // "SPACEFC1"
  private static final int HEADER_BYTES = 12;
  private static final int TRAILER_BYTES = 4;
  private static final int MANIFEST_BYTES_MAX = 16 * 1024;

  /// Firecracker itself takes no more than 10 MB.
  static final int STATE_BYTES_MAX = 16 << 20;

  private static final JsonMapper JSON = JsonMapper.builder().build();

  private StateFile() {}

  /// What lies before the state.
  ///
  /// @param version of the manifest
  /// @param vmm full version of the Firecracker that wrote the state
  /// @param diskRate the bounds that the state holds
  record Manifest(int version, String vmm, Compatibility compatibility, DiskRate diskRate) {
    static final int VERSION = 1;
  }

  /// A manifest and the state behind it.
  record Content(Manifest manifest, byte[] state) {}

  /// Writes the file and forces it to the disk.
  static void write(Path file, Manifest manifest, byte[] state) throws IOException {
    byte[] json = JSON.writeValueAsString(manifest).getBytes(StandardCharsets.UTF_8);
    ByteBuffer all = ByteBuffer.allocate(HEADER_BYTES + json.length + state.length + TRAILER_BYTES);
    all.putLong(MAGIC).putInt(json.length).put(json).put(state);
    CRC32C crc = new CRC32C();
    crc.update(all.array(), 0, all.position());
    all.putInt((int) crc.getValue()).flip();
    try (FileChannel out =
        FileChannel.open(
            file,
            StandardOpenOption.CREATE,
            StandardOpenOption.WRITE,
            StandardOpenOption.TRUNCATE_EXISTING)) {
      while (all.hasRemaining()) {
        out.write(all);
      }
      out.force(true);
    }
  }

  /// Reads a file back.
  ///
  /// @throws SpaceException SNAPSHOT_DAMAGED when it isn't whole
  static Content read(Path file) throws IOException {
    if (Files.size(file) > STATE_BYTES_MAX + HEADER_BYTES + MANIFEST_BYTES_MAX) {
      throw damaged("it is larger than any");
    }
    byte[] bytes = Files.readAllBytes(file);
    ByteBuffer all = ByteBuffer.wrap(bytes);
    if (bytes.length < HEADER_BYTES + TRAILER_BYTES || all.getLong() != MAGIC) {
      throw damaged("it is of another driver, or none");
    }
    int length = all.getInt();
    int left = bytes.length - HEADER_BYTES - TRAILER_BYTES;
    if (length < 2 || length > Math.min(left, MANIFEST_BYTES_MAX)) {
      throw damaged("its manifest is cut off");
    }
    CRC32C crc = new CRC32C();
    crc.update(bytes, 0, bytes.length - TRAILER_BYTES);
    if (all.getInt(bytes.length - TRAILER_BYTES) != (int) crc.getValue()) {
      throw damaged("its checksum is wrong");
    }
    byte[] json = new byte[length];
    all.get(json);
    byte[] state = new byte[left - length];
    all.get(state);
    try {
      Manifest manifest = JSON.readValue(json, Manifest.class);
      if (manifest.version() != Manifest.VERSION) {
        throw damaged("its manifest is of version " + manifest.version());
      }
      return new Content(manifest, state);
    } catch (JacksonException e) {
      throw damaged("its manifest can't be read");
    }
  }

  private static SpaceException damaged(String why) {
    return Problem.of(ErrorCode.SNAPSHOT_DAMAGED, "The saved device state is damaged.")
        .because(why)
        .toException();
  }
}
