package dev.space.node;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.json.JsonMapper;

/// Small JSON files that are always whole.
final class Records {

  private static final JsonMapper JSON = JsonMapper.builder().build();

  private Records() {}

  /// Writes aside and renames. A crash of the daemon leaves the old or the new content; against a
  /// loss of power it takes a [Folders#force] too.
  static void write(Path file, Object value) {
    Path partial = Folders.partial(file);
    try {
      Files.write(partial, JSON.writeValueAsBytes(value));
    } catch (IOException e) {
      throw Folders.failure("Writing " + file + " failed", e);
    }
    Folders.publish(partial, file);
  }

  /// @throws dev.space.core.error.SpaceException SNAPSHOT_DAMAGED when it isn't there or isn't
  ///   whole
  static <T> T read(Path file, Class<T> type) {
    try {
      return JSON.readValue(Files.readAllBytes(file), type);
    } catch (IOException | JacksonException e) {
      throw Problem.of(ErrorCode.SNAPSHOT_DAMAGED, file + " can't be read")
          .because(e.toString())
          .toException(e);
    }
  }
}
