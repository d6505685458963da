package dev.space.e2b;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.core.guest.FileEntry;
import dev.space.core.guest.FileEntry.Target;
import dev.space.core.guest.FileEntry.Type;
import dev.space.e2b.proto.filesystem.EntryInfo;
import dev.space.e2b.proto.filesystem.FileType;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class EntriesTest {

  @ParameterizedTest
  @CsvSource({
    "FILE, 644, -rw-r--r--",
    "FILE, 0, ----------",
    "DIRECTORY, 755, drwxr-xr-x",
    "DIRECTORY, 1777, dtrwxrwxrwx",
    "FILE, 4755, urwxr-xr-x",
    "FILE, 2711, grwx--x--x",
    "SYMLINK, 777, Lrwxrwxrwx",
    "FIFO, 600, prw-------",
    "SOCKET, 666, Srw-rw-rw-",
    "CHAR_DEVICE, 666, Dcrw-rw-rw-",
    "BLOCK_DEVICE, 660, Drw-rw----"
  })
  void permissionsAreInGosWords(Type type, String octal, String text) {
    FileEntry entry = entry(type, Integer.parseInt(octal, 8), Optional.empty());
    assertThat(Entries.permissions(entry)).isEqualTo(text);
  }

  @Test
  void aLinkHasItsTargetsTypeAndModeAndItsOwnPermissions() {
    EntryInfo info =
        Entries.info(
            entry(Type.SYMLINK, 0777, Optional.of(new Target("/t", Type.DIRECTORY, 040755))));
    assertThat(info.getType()).isEqualTo(FileType.FILE_TYPE_DIRECTORY);
    assertThat(info.getMode()).isEqualTo(0755);
    assertThat(info.getSymlinkTarget()).isEqualTo("/t");
    assertThat(info.getPermissions()).isEqualTo("Lrwxrwxrwx");
  }

  @Test
  void aBrokenLinkHasNoTypeAndLeadsToItself() {
    EntryInfo info = Entries.info(entry(Type.SYMLINK, 0777, Optional.empty()));
    assertThat(info.getType()).isEqualTo(FileType.FILE_TYPE_UNSPECIFIED);
    assertThat(info.getSymlinkTarget()).isEqualTo("/d/x");
  }

  @Test
  void onlyE2bsAttributesAreMetadata() {
    EntryInfo info = Entries.info(entry(Type.FILE, 0644, Optional.empty()));
    assertThat(info.getMetadataMap()).isEqualTo(Map.of("author", "me"));
  }

  private static FileEntry entry(Type type, int mode, Optional<Target> target) {
    return new FileEntry(
        "/d/x",
        "x",
        type,
        5,
        mode,
        1000,
        1000,
        "user",
        "user",
        Instant.EPOCH,
        Optional.empty(),
        target,
        1,
        Map.of("e2b.author", bytes("me"), "other", bytes("x")));
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
