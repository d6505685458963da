package dev.space.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.error.SpaceException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.commons.compress.archivers.cpio.CpioArchiveEntry;
import org.apache.commons.compress.archivers.cpio.CpioArchiveInputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.tukaani.xz.LZMA2Options;
import org.tukaani.xz.XZOutputStream;

class InitramfsTest {

  @TempDir private Path modules;

  private List<KernelModules.Module> closure(String... wanted) throws IOException {
    return KernelModules.in(modules).closure(List.of(wanted));
  }

  private void standardModules() throws IOException {
    FakeModules.write(modules, "virtio.ko", "virtio_ring");
    FakeModules.write(modules, "virtio_ring.ko", "");
    FakeModules.write(modules, "virtio-rng.ko", "rng-core,virtio");
    FakeModules.write(modules, "rng-core.ko", "");
    Files.writeString(modules.resolve("modules.builtin"), "kernel/fs/ext4/ext4.ko\n");
  }

  @Test
  void dependenciesComeBeforeWhatNeedsThem() throws IOException {
    standardModules();
    assertThat(closure("virtio_rng", "ext4"))
        .extracting(KernelModules.Module::name)
        .containsExactly("rng_core", "virtio_ring", "virtio", "virtio_rng");
  }

  @Test
  void compressedModulesAreUnpacked() throws IOException {
    ByteArrayOutputStream packed = new ByteArrayOutputStream();
    try (OutputStream xz = new XZOutputStream(packed, new LZMA2Options(0))) {
      xz.write(FakeModules.module(""));
    }
    Files.write(modules.resolve("a.ko.xz"), packed.toByteArray());
    assertThat(closure("a").getFirst().content()).isEqualTo(FakeModules.module(""));
  }

  @Test
  void aMissingModuleIsNamed() throws IOException {
    FakeModules.write(modules, "virtio.ko", "gone");
    assertThatThrownBy(() -> closure("virtio"))
        .isInstanceOf(SpaceException.class)
        .hasMessageContaining("gone");
  }

  @Test
  void aDamagedModuleIsNamed() throws IOException {
    Files.write(modules.resolve("virtio.ko"), new byte[500]);
    assertThatThrownBy(() -> closure("virtio"))
        .isInstanceOf(SpaceException.class)
        .hasMessageContaining("virtio.ko is damaged");
  }

  @Test
  void modulesThatDependOnEachOtherAreRefused() throws IOException {
    FakeModules.write(modules, "a.ko", "b");
    FakeModules.write(modules, "b.ko", "a");
    assertThatThrownBy(() -> closure("a")).isInstanceOf(SpaceException.class);
  }

  @Test
  void readsBackAsItWasWritten() throws IOException {
    standardModules();
    byte[] agent = "agent".getBytes(StandardCharsets.US_ASCII);
    Initramfs initramfs =
        new Initramfs(agent, closure("virtio_rng"), List.of("virtio_rng", "ext4"));
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    initramfs.write(out);
    ByteArrayOutputStream again = new ByteArrayOutputStream();
    initramfs.write(again);
    assertThat(again.toByteArray()).isEqualTo(out.toByteArray());

    Map<String, CpioArchiveEntry> entries = new LinkedHashMap<>();
    Map<String, String> content = new LinkedHashMap<>();
    try (CpioArchiveInputStream in =
        new CpioArchiveInputStream(new ByteArrayInputStream(out.toByteArray()))) {
      for (CpioArchiveEntry e = in.getNextEntry(); e != null; e = in.getNextEntry()) {
        entries.put(e.getName(), e);
        content.put(e.getName(), new String(in.readAllBytes(), StandardCharsets.ISO_8859_1));
      }
    }
    assertThat(entries.keySet())
        .containsExactly(
            "dev",
            "modules",
            "newroot",
            "proc",
            "run",
            "sys",
            "dev/console",
            "init",
            "modules/modules.dep",
            "modules/rng_core.ko",
            "modules/virtio.ko",
            "modules/virtio_ring.ko",
            "modules/virtio_rng.ko",
            "modules/wanted");
    assertThat(entries.values()).allSatisfy(e -> assertThat(e.getTime()).isZero());
    assertThat(Objects.requireNonNull(entries.get("init")).getMode()).isEqualTo(0100755);
    assertThat(content)
        .containsEntry("init", "agent")
        .containsEntry("modules/wanted", "virtio_rng\n");
    assertThat(Objects.requireNonNull(content.get("modules/modules.dep")).lines())
        .contains(
            "virtio_rng.ko: rng_core.ko virtio.ko virtio_ring.ko",
            "virtio.ko: virtio_ring.ko",
            "virtio_ring.ko:");
    CpioArchiveEntry console = Objects.requireNonNull(entries.get("dev/console"));
    assertThat(console.isCharacterDevice()).isTrue();
    assertThat(console.getRemoteDeviceMaj()).isEqualTo(5);
    assertThat(console.getRemoteDeviceMin()).isEqualTo(1);
  }
}
