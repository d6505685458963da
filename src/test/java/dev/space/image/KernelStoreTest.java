package dev.space.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.host.Processes;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.json.JsonMapper;

class KernelStoreTest {

  @TempDir private Path data;

  private KernelStore store() {
    return new KernelStore(data, new Processes(Map.of()));
  }

  private static byte[] bzImage(String release) {
    ByteBuffer image = ByteBuffer.allocate(4096).order(ByteOrder.LITTLE_ENDIAN);
    image.putShort(0x1fe, (short) 0xaa55).putInt(0x202, 0x53726448);
    image.putShort(0x20e, (short) 0x600);
    image.put(0x800, (release + " (someone) #1").getBytes(StandardCharsets.US_ASCII));
    return image.array();
  }

  private Path installed() throws IOException {
    Path dir = Files.createDirectories(data.resolve("kernel/6.1.0-test"));
    Path image = dir.resolve("vmlinuz");
    Files.write(image, bzImage("6.1.0-test"));
    Files.createDirectories(dir.resolve("modules"));
    Files.write(
        dir.resolve("kernel.json"),
        JsonMapper.shared()
            .writeValueAsBytes(
                new KernelStore.Manifest(
                    "6.1.0-test", "linux.deb", Files.size(image), Digests.ofFile(image))));
    Files.writeString(data.resolve("kernel/current"), "6.1.0-test\n");
    return image;
  }

  private void damaged(String... words) {
    assertThatThrownBy(() -> store().installed())
        .isInstanceOfSatisfying(
            SpaceException.class,
            e -> {
              assertThat(e.code()).isEqualTo(ErrorCode.PREREQUISITE_MISSING);
              assertThat(e.problem().oneLine()).contains(words);
              assertThat(e.problem().remedy().orElseThrow()).contains("'space setup'");
            });
  }

  @Test
  void findsWhatWasUnpacked() throws IOException {
    Path image = installed();
    GuestKernel kernel = store().installed().orElseThrow();
    assertThat(kernel.release()).isEqualTo("6.1.0-test");
    assertThat(kernel.image()).isEqualTo(image);
  }

  @Test
  void thereIsNoneBeforeASetup() {
    assertThat(store().installed()).isEmpty();
  }

  @Test
  void namesADamagedFile() throws IOException {
    Path image = installed();
    byte[] bytes = Files.readAllBytes(image);
    bytes[3000] ^= 1;
    Files.write(image, bytes);
    damaged(image.toString(), "SHA-256");
    Files.write(image, new byte[100]);
    damaged(image.toString(), "no bzImage");
    Files.write(image, java.util.Arrays.copyOf(bytes, 4000));
    damaged(image.toString(), "4000 bytes instead of 4096");
    Files.delete(image);
    damaged(image.toString(), "no such file");
  }

  @Test
  void namesADamagedRecord() throws IOException {
    installed();
    Files.writeString(data.resolve("kernel/6.1.0-test/kernel.json"), "{");
    damaged("damaged");
  }

  @Test
  void takesAKernelOfTheOperators() throws IOException {
    Path image = Files.write(data.resolve("own"), bzImage("7.0.1-own"));
    Path modules = Files.createDirectory(data.resolve("mods"));
    assertThat(store().of(image, modules).release()).isEqualTo("7.0.1-own");
    assertThatThrownBy(() -> store().of(data.resolve("gone"), modules))
        .hasMessageContaining("no such file");
    assertThatThrownBy(() -> store().of(image, data.resolve("gone")))
        .hasMessageContaining("kernel modules");
  }
}
