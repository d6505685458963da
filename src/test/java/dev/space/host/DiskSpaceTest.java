package dev.space.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DiskSpaceTest {

  @TempDir private Path dir;

  @Test
  void aDirectoryHasRoom() throws IOException {
    DiskSpace space = DiskSpace.of(dir);
    assertThat(space.totalBytes()).isGreaterThan(0);
    assertThat(space.freeBytes()).isBetween(0L, space.totalBytes());
  }

  @Test
  void whatIsNotThereHasNone() {
    assertThatThrownBy(() -> DiskSpace.of(dir.resolve("none")))
        .isInstanceOf(NoSuchFileException.class);
  }
}
