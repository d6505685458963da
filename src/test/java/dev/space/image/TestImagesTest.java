package dev.space.image;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.host.Processes;
import dev.space.host.SparseFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("slow")
class TestImagesTest {

  @Test
  void bootFilesAndRootImageAreThere() throws Exception {
    assertThat(Files.size(TestImages.root())).isGreaterThan(100L << 20);
    BootFiles boot = TestImages.boot();
    assertThat(BzImage.isBzImage(boot.kernel())).isTrue();
    assertThat(BzImage.release(boot.kernel())).isEqualTo(boot.release());
    assertThat(Files.size(boot.initramfs())).isGreaterThan(1 << 20);
    assertThat(TestImages.boot().initramfs()).isEqualTo(boot.initramfs());
  }

  @Test
  void theKernelUnpacksToAnElfFileOfItsRecordedSize(@TempDir Path dir) {
    TestImages.boot();
    GuestKernel kernel =
        new KernelStore(TestImages.data(), new Processes(Map.of())).installed().orElseThrow();
    assertThat(Vmlinux.extract(kernel, dir)).isNotEmptyFile();
  }

  @Test
  void disksOfOneSizeAreEqual(@TempDir Path dir) throws Exception {
    DiskImages disks = TestImages.disks();
    disks.makeWritable(dir.resolve("a"), 4096);
    disks.makeWritable(dir.resolve("b"), 4096);
    assertThat(Files.size(dir.resolve("a"))).isEqualTo(4096L << 20);
    assertThat(SparseFile.occupied(dir.resolve("a"))).isLessThan(4L << 20);
    assertThat(Files.mismatch(dir.resolve("a"), dir.resolve("b"))).isEqualTo(-1);
  }
}
