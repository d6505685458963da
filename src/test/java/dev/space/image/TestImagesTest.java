package dev.space.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("slow")
class TestImagesTest {

  @Test
  void rootImageAndDiskAreExt4(@TempDir Path dir) throws Exception {
    Path root = TestImages.root();
    assertThat(Files.size(root)).isGreaterThan(100L << 20);
    TestImages.disks().makeWritable(dir.resolve("a"), 4096);
    var disks = TestImages.disks();
    disks.makeWritable(dir.resolve("b"), 4096);
    disks.makeWritable(dir.resolve("c"), 4096);
    assertThat(Files.size(dir.resolve("c"))).isEqualTo(4096L << 20);
    assertThat(Files.mismatch(dir.resolve("b"), dir.resolve("c"))).isEqualTo(-1);
  }
}
