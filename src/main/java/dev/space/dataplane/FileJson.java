package dev.space.dataplane;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.FileEntry;
import java.util.Locale;
import java.util.Optional;

/// A file as it stands in answers.
///
/// @param mode permission bits in octal, such as `0644`
record FileJson(
    String path,
    String name,
    String type,
    long size,
    String mode,
    int uid,
    int gid,
    String owner,
    String group,
    String modifiedAt,
    Optional<String> symlinkTarget,
    Optional<TargetJson> target) {

  record TargetJson(String path, String type, String mode) {}

  static FileJson of(FileEntry entry) {
    return new FileJson(
        entry.path(),
        entry.name(),
        type(entry.type()),
        entry.size(),
        octal(entry.mode()),
        entry.uid(),
        entry.gid(),
        entry.owner(),
        entry.group(),
        entry.modifiedAt().toString(),
        entry.symlinkTarget(),
        entry.target().map(t -> new TargetJson(t.path(), type(t.type()), octal(t.mode()))));
  }

  /// Reads permission bits given in octal.
  static int mode(String text) {
    if (!text.matches("0?[0-7]{1,4}")) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "The mode is no octal number.")
          .remedy("Give permission bits such as 0644.")
          .toException();
    }
    return Integer.parseInt(text, 8);
  }

  private static String type(FileEntry.Type type) {
    return type.name().toLowerCase(Locale.ROOT);
  }

  private static String octal(int mode) {
    return "%04o".formatted(mode);
  }
}
