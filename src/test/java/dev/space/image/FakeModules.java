package dev.space.image;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/// Writes kernel modules that have nothing but a `.modinfo` section.
final class FakeModules {

  private FakeModules() {}

  static byte[] module(String depends) {
    byte[] info =
        ("license=GPL\0depends=" + depends + "\0name=x\0").getBytes(StandardCharsets.US_ASCII);
    byte[] names = "\0.modinfo\0.shstrtab\0".getBytes(StandardCharsets.US_ASCII);
    ByteBuffer elf =
        ByteBuffer.allocate(64 + info.length + names.length + 3 * 64)
            .order(ByteOrder.LITTLE_ENDIAN);
    elf.putInt(0, 0x464c457f).put(4, (byte) 2).put(5, (byte) 1);
    int table = 64 + info.length + names.length;
    elf.putLong(40, table).putShort(58, (short) 64).putShort(60, (short) 3).putShort(62, (short) 2);
    elf.put(64, info).put(64 + info.length, names);
    section(elf, table + 64, 1, 64, info.length);
    section(elf, table + 128, 10, 64 + info.length, names.length);
    return elf.array();
  }

  private static void section(ByteBuffer elf, int at, int name, long offset, long size) {
    elf.putInt(at, name).putLong(at + 24, offset).putLong(at + 32, size);
  }

  static void write(Path directory, String file, String depends) throws IOException {
    Path path = directory.resolve("kernel").resolve(file);
    Files.createDirectories(directory.resolve("kernel"));
    Files.write(path, module(depends));
  }
}
