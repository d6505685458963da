package dev.space.image;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/// What a kernel module says about itself: the `.modinfo` section of its ELF file, zero-terminated
/// `key=value` texts. A Debian kernel package has no `modules.dep` (its installation makes it on
/// the host), so this is where dependencies come from; `depmod` reads the same.
record ModuleInfo(List<String> depends) {

  private static final int SECTION_NAME_TABLE_INDEX = 62;

  /// Reads an ELF64 little-endian module.
  ///
  /// @return empty when the bytes are no such file or have no `.modinfo`
  static Optional<ModuleInfo> read(byte[] module) {
    try {
      return section(ByteBuffer.wrap(module).order(ByteOrder.LITTLE_ENDIAN), ".modinfo")
          .map(ModuleInfo::parse);
    } catch (IndexOutOfBoundsException _) {
      return Optional.empty();
    }
  }

  private static ModuleInfo parse(byte[] section) {
    List<String> depends = new ArrayList<>();
    for (String entry : new String(section, StandardCharsets.ISO_8859_1).split("\0+")) {
      if (entry.startsWith("depends=")) {
        Arrays.stream(entry.substring("depends=".length()).split(","))
            .filter(name -> !name.isEmpty())
            .map(KernelModules::canonical)
            .forEach(depends::add);
      }
    }
    return new ModuleInfo(List.copyOf(depends));
  }

  private static Optional<byte[]> section(ByteBuffer elf, String wanted) {
    if (elf.remaining() < 64 || elf.getInt(0) != 0x464c457f || elf.get(4) != 2) {
      return Optional.empty();
    }
    int table = Math.toIntExact(elf.getLong(40));
    int entrySize = Short.toUnsignedInt(elf.getShort(58));
    int count = Short.toUnsignedInt(elf.getShort(60));
    int namesAt = table + entrySize * Short.toUnsignedInt(elf.getShort(SECTION_NAME_TABLE_INDEX));
    int names = Math.toIntExact(elf.getLong(namesAt + 24));
    for (int i = 0; i < count; i++) {
      int header = table + entrySize * i;
      if (textAt(elf, names + elf.getInt(header)).equals(wanted)) {
        byte[] bytes = new byte[Math.toIntExact(elf.getLong(header + 32))];
        elf.get(Math.toIntExact(elf.getLong(header + 24)), bytes);
        return Optional.of(bytes);
      }
    }
    return Optional.empty();
  }

  private static String textAt(ByteBuffer bytes, int at) {
    StringBuilder text = new StringBuilder();
    for (int i = at; bytes.get(i) != 0; i++) {
      text.append((char) bytes.get(i));
    }
    return text.toString();
  }
}
