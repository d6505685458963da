package dev.space.e2b;

import com.google.protobuf.Timestamp;
import dev.space.core.guest.FileEntry;
import dev.space.e2b.proto.filesystem.EntryInfo;
import dev.space.e2b.proto.filesystem.FileType;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;

/// Files in E2B's words: for links, type and mode are the target's, the rest is the link's own.
final class Entries {

  /// Where E2B keeps a file's metadata, below `user.`.
  static final String METADATA_PREFIX = "e2b.";

  private static final int PERMISSIONS = 0777;
  private static final int SETUID = 04000;
  private static final int SETGID = 02000;
  private static final int STICKY = 01000;

  private Entries() {}

  static EntryInfo info(FileEntry file) {
    boolean link = file.type() == FileEntry.Type.SYMLINK;
    EntryInfo.Builder info =
        EntryInfo.newBuilder()
            .setName(file.name())
            .setPath(file.path())
            .setSize(file.size())
            .setType(
                link
                    ? file.target().map(t -> type(t.type())).orElse(FileType.FILE_TYPE_UNSPECIFIED)
                    : type(file.type()))
            .setMode(
                (link ? file.target().map(FileEntry.Target::mode).orElse(file.mode()) : file.mode())
                    & PERMISSIONS)
            .setPermissions(permissions(file))
            .setOwner(file.owner())
            .setGroup(file.group())
            .setModifiedTime(timestamp(file.modifiedAt()))
            .putAllMetadata(metadata(file));
    if (link) {
      info.setSymlinkTarget(file.target().map(FileEntry.Target::path).orElse(file.path()));
    }
    return info.build();
  }

  static Map<String, String> metadata(FileEntry file) {
    Map<String, String> found = new LinkedHashMap<>();
    file.xattrs()
        .forEach(
            (name, value) -> {
              if (name.startsWith(METADATA_PREFIX)) {
                found.put(
                    name.substring(METADATA_PREFIX.length()),
                    new String(value, StandardCharsets.UTF_8));
              }
            });
    return found;
  }

  private static FileType type(FileEntry.Type type) {
    return switch (type) {
      case FILE -> FileType.FILE_TYPE_FILE;
      case DIRECTORY -> FileType.FILE_TYPE_DIRECTORY;
      case SYMLINK -> FileType.FILE_TYPE_SYMLINK;
      case FIFO, SOCKET, CHAR_DEVICE, BLOCK_DEVICE, UNKNOWN -> FileType.FILE_TYPE_UNSPECIFIED;
    };
  }

  /// The mode as Go's `fs.FileMode` prints it, such as `-rw-r--r--` or `Lrwxrwxrwx`.
  static String permissions(FileEntry file) {
    StringBuilder text = new StringBuilder();
    switch (file.type()) {
      case DIRECTORY -> text.append('d');
      case SYMLINK -> text.append('L');
      case FIFO -> text.append('p');
      case SOCKET -> text.append('S');
      case CHAR_DEVICE -> text.append("Dc");
      case BLOCK_DEVICE -> text.append('D');
      case FILE, UNKNOWN -> {
        // A plain file has no letter.
      }
    }
    text.append((file.mode() & SETUID) != 0 ? "u" : "")
        .append((file.mode() & SETGID) != 0 ? "g" : "")
        .append((file.mode() & STICKY) != 0 ? "t" : "");
    if (text.isEmpty()) {
      text.append('-');
    }
    String letters = "rwxrwxrwx";
    for (int i = 0; i < letters.length(); i++) {
      text.append((file.mode() & (1 << (letters.length() - 1 - i))) != 0 ? letters.charAt(i) : '-');
    }
    return text.toString();
  }

  private static Timestamp timestamp(Instant at) {
    return Timestamp.newBuilder().setSeconds(at.getEpochSecond()).setNanos(at.getNano()).build();
  }
}
