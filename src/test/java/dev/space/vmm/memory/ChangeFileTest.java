package dev.space.vmm.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.type;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ChangeFileTest {

  private static final int PAGES = 600;
  private static final int BYTES = PAGES * PageRun.PAGE_BYTES;
  private static final List<PageRun> RUNS =
      List.of(new PageRun(0, 1), new PageRun(3, 200), new PageRun(599, 1));

  @TempDir Path dir;
  private final byte[] memory = new byte[BYTES];
  private Path file;

  ChangeFileTest() {
    new Random(1).nextBytes(memory);
  }

  @BeforeEach
  void write() throws IOException {
    file = dir.resolve("changes");
    ChangeFile.write(
        file, BYTES, RUNS, (offset, into) -> into.put(memory, (int) offset, into.remaining()));
  }

  private static ChangeFile.Sink into(byte[] target) {
    return (offset, bytes) -> bytes.get(target, (int) offset, bytes.remaining());
  }

  @Test
  void onlyTheChangedPagesComeBack() throws IOException {
    byte[] target = new byte[BYTES];
    assertThat(ChangeFile.apply(file, BYTES, into(target))).isEqualTo(202L * 4096);
    byte[] expected = new byte[BYTES];
    for (PageRun run : RUNS) {
      int at = (int) run.first() * PageRun.PAGE_BYTES;
      System.arraycopy(memory, at, expected, at, (int) run.count() * PageRun.PAGE_BYTES);
    }
    assertThat(target).isEqualTo(expected);
    assertThat(ChangeFile.isInState(file)).isFalse();
  }

  @Test
  void aWholeMemoryIsTheImageWithTheChangesInIt() throws IOException {
    byte[] base = new byte[BYTES];
    Path image = Files.write(dir.resolve("image"), base);
    Path target = dir.resolve("whole");
    WholeMemory.make(image, file, target);
    ChangeFile.apply(file, BYTES, into(base));
    assertThat(Files.readAllBytes(target)).isEqualTo(base);
  }

  @Test
  void everyFlippedBitAndEveryCutIsSeen() throws IOException {
    byte[] good = Files.readAllBytes(file);
    var random = new Random(2);
    for (int i = 0; i < 300; i++) {
      byte[] bad = good.clone();
      int at = i < 100 ? i : random.nextInt(good.length);
      bad[at] ^= (byte) (1 << random.nextInt(8));
      assertDamaged(bad);
      assertDamaged(Arrays.copyOf(good, random.nextInt(good.length)));
    }
    assertDamaged(Arrays.copyOf(good, good.length + 1));
  }

  private void assertDamaged(byte[] content) throws IOException {
    Path bad = Files.write(dir.resolve("bad"), content);
    byte[] target = new byte[BYTES];
    assertThatThrownBy(() -> ChangeFile.apply(bad, BYTES, into(target)))
        .asInstanceOf(type(SpaceException.class))
        .extracting(SpaceException::code)
        .isEqualTo(ErrorCode.SNAPSHOT_DAMAGED);
  }

  @Test
  void aFileOfAnotherMemoryIsRefused() {
    assertThatThrownBy(() -> ChangeFile.apply(file, BYTES * 2L, (_, _) -> {}))
        .isInstanceOf(SpaceException.class);
  }

  @Test
  void damagedWholeMemoryLeavesNothing() throws IOException {
    Path image = Files.write(dir.resolve("image"), new byte[BYTES]);
    Path bad = Files.write(dir.resolve("bad"), new byte[100]);
    Path target = dir.resolve("whole");
    assertThatThrownBy(() -> WholeMemory.make(image, bad, target))
        .isInstanceOf(SpaceException.class);
    assertThat(target).doesNotExist();
  }

  @Test
  void memoryThatLiesInTheStateFileNeedsNothingPutInPlace() throws IOException {
    Path inState = dir.resolve("in-state");
    ChangeFile.writeInState(inState, BYTES);
    assertThat(ChangeFile.isInState(inState)).isTrue();
    assertThat(ChangeFile.apply(inState, BYTES, (_, _) -> {})).isZero();
  }

  @Test
  void allPagesOfAFileCanBeTheChanges() throws IOException {
    Path image = Files.write(dir.resolve("image"), memory);
    Path all = dir.resolve("all");
    try (var in = java.nio.channels.FileChannel.open(image)) {
      ChangeFile.writeAll(all, BYTES, in);
    }
    byte[] target = new byte[BYTES];
    ChangeFile.apply(all, BYTES, into(target));
    assertThat(ByteBuffer.wrap(target)).isEqualTo(ByteBuffer.wrap(memory));
  }
}
