package dev.space.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SparseFileTest {

  @TempDir Path dir;

  private Path sparse() throws IOException {
    Path file = dir.resolve("from");
    try (var out = new RandomAccessFile(file.toFile(), "rw")) {
      out.setLength(256L << 20);
      out.seek(100L << 20);
      out.write(new byte[] {1, 2, 3});
    }
    return file;
  }

  @Test
  void aCopyKeepsHoles() throws IOException {
    Path from = sparse();
    Path to = dir.resolve("to");
    SparseFile.copy(from, to);
    assertThat(Files.size(to)).isEqualTo(256L << 20);
    assertThat(Files.mismatch(from, to)).isEqualTo(-1);
    assertThat(SparseFile.occupied(to)).isBetween(1L, 1L << 20);
  }

  @Test
  void emptyFilesAndFilesThatAreOneHoleAreCopied() throws IOException {
    Path empty = Files.createFile(dir.resolve("empty"));
    SparseFile.copy(empty, dir.resolve("a"));
    assertThat(dir.resolve("a")).isEmptyFile();
    try (var out = new RandomAccessFile(empty.toFile(), "rw")) {
      out.setLength(1L << 20);
    }
    SparseFile.copy(empty, dir.resolve("b"));
    assertThat(Files.mismatch(empty, dir.resolve("b"))).isEqualTo(-1);
  }

  @Test
  void aFailedCopyLeavesNothingAndNothingIsOverwritten() throws IOException {
    assertThatThrownBy(() -> SparseFile.copy(dir.resolve("none"), dir.resolve("to")))
        .isInstanceOf(IOException.class);
    assertThat(dir.resolve("to")).doesNotExist();
    Path there = Files.writeString(dir.resolve("there"), "mine");
    assertThatThrownBy(() -> SparseFile.copy(sparse(), there)).isInstanceOf(IOException.class);
    assertThat(there).hasContent("mine");
  }
}
