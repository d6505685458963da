package dev.space.host;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// What a kernel says about its machine in `/proc` and `/sys`.
///
/// @param root where they are looked for
record HostFiles(Path root) {

  private static final int BYTES_MAX = 1 << 20;

  /// A file's text without the space around it; empty when it isn't there or isn't readable.
  ///
  /// Numbers in `/proc/sys` are given to the first read alone, and `Files.readString` begins with
  /// one of a single byte, as these files say that they are empty.
  Optional<String> text(String path) {
    try (InputStream in = Files.newInputStream(root.resolve(path))) {
      return Optional.of(new String(in.readNBytes(BYTES_MAX), StandardCharsets.UTF_8).strip());
    } catch (IOException _) {
      return Optional.empty();
    }
  }

  List<String> lines(String path) {
    return text(path).map(text -> text.lines().toList()).orElse(List.of());
  }

  Optional<Long> number(String path) {
    return text(path).filter(t -> t.matches("-?\\d{1,18}")).map(Long::valueOf);
  }

  boolean exists(String path) {
    return Files.exists(root.resolve(path));
  }

  boolean mayUse(String path) {
    return Files.isReadable(root.resolve(path)) && Files.isWritable(root.resolve(path));
  }

  /// Names in a directory, sorted; none when there is no such directory.
  List<String> names(String path) {
    try (Stream<Path> all = Files.list(root.resolve(path))) {
      return all.map(p -> p.getFileName().toString()).sorted().toList();
    } catch (IOException _) {
      return List.of();
    }
  }

  /// A field of `/proc/cpuinfo`, as the first processor has it.
  Optional<String> cpu(String field) {
    Pattern line = Pattern.compile("^" + Pattern.quote(field) + "\\s*:\\s*(.*)$");
    return lines("proc/cpuinfo").stream()
        .map(line::matcher)
        .filter(Matcher::matches)
        .map(m -> m.group(1))
        .findFirst();
  }

  /// A figure of `/proc/meminfo`.
  Optional<Long> meminfo(String field) {
    return lines("proc/meminfo").stream()
        .filter(line -> line.startsWith(field + ":"))
        .map(line -> line.replaceAll("[^0-9]", ""))
        .filter(digits -> !digits.isEmpty())
        .map(Long::valueOf)
        .findFirst();
  }

  /// Major and minor number of the running kernel, as one: 6.1 is 6001. 0 when it isn't known.
  int kernel() {
    Matcher version =
        Pattern.compile("^(\\d{1,4})\\.(\\d{1,3})")
            .matcher(text("proc/sys/kernel/osrelease").orElse(""));
    return version.find() ? kernel(group(version, 1), group(version, 2)) : 0;
  }

  private static int group(Matcher matcher, int at) {
    return Integer.parseInt(matcher.group(at));
  }

  static int kernel(int major, int minor) {
    return major * 1000 + minor;
  }
}
