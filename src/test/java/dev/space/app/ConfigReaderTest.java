package dev.space.app;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.app.SpaceConfig.VmmChoice;
import dev.space.app.SpaceConfig.Warm;
import dev.space.core.error.SpaceException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ConfigReaderTest {

  @TempDir Path dir;

  @Test
  void defaultsListenOnLoopbackAlone() {
    SpaceConfig config = read(Map.of(), Map.of());
    assertThat(config.listen().getAddress().isLoopbackAddress()).isTrue();
    assertThat(config.listen().getPort()).isEqualTo(8700);
    assertThat(config.dataListen().getAddress().isLoopbackAddress()).isTrue();
    assertThat(config.dataListen().getPort()).isEqualTo(8701);
    assertThat(config.vmm()).isEqualTo(VmmChoice.AUTO);
    assertThat(config.limits()).isEqualTo(new SpaceConfig.Limits(1000, 0, 2.0, 1024));
    assertThat(config.onStop()).isEqualTo(SpaceConfig.OnStop.KEEP);
  }

  @Test
  void flagsWinOverEnvironmentAndEnvironmentOverFile() throws IOException {
    Files.writeString(
        dir.resolve("config.yaml"),
        """
        listen: 127.0.0.1:1
        data_listen: 127.0.0.1:1
        limits:
          vms_max: 1
        warm:
          base: 2
        """);
    SpaceConfig config =
        read(
            Map.of("SPACE_DATA_LISTEN", "127.0.0.1:2", "SPACE_LIMITS_VMS_MAX", "2"),
            Map.of("limits.vms_max", "3"));
    assertThat(config.listen().getPort()).isEqualTo(1);
    assertThat(config.dataListen().getPort()).isEqualTo(2);
    assertThat(config.limits().vmsMax()).isEqualTo(3);
    assertThat(config.warm()).containsExactly(new Warm("base", 2));
  }

  @ParameterizedTest
  @CsvSource({
    "listen, 8700, listen",
    "listen, 127.0.0.1:x, listen",
    "listen, 127.0.0.1:70000, listen",
    "vmm, xen, vmm",
    "qemu.accelerator, hvf, qemu.accelerator",
    "limits.vms_max, 0, limits.vms_max",
    "limits.vms_max, many, limits.vms_max",
    "limits.memory_overcommit, NaN, limits.memory_overcommit",
    "on_stop, explode, on_stop",
    "no_such_key, 1, no_such_key"
  })
  void badValuesAreNamed(String key, String value, String named) {
    assertThatThrownBy(() -> read(Map.of(), Map.of(key, value)))
        .isInstanceOf(SpaceException.class)
        .hasMessageContaining("'" + named + "'");
  }

  @Test
  void unknownKeysInTheFileAreNamedWithTheFile() throws IOException {
    Files.writeString(dir.resolve("config.yaml"), "limits: {vm_max: 3}\n");
    assertThatThrownBy(() -> read(Map.of(), Map.of()))
        .hasMessageContaining("limits.vm_max")
        .hasMessageContaining("config.yaml");
  }

  @Test
  void brokenYamlIsNamed() throws IOException {
    Files.writeString(dir.resolve("config.yaml"), "a: [1\n");
    assertThatThrownBy(() -> read(Map.of(), Map.of())).hasMessageContaining("not valid YAML");
  }

  private SpaceConfig read(Map<String, String> environment, Map<String, String> flags) {
    Map<String, String> all = new java.util.HashMap<>(flags);
    all.put("data_dir", dir.toString());
    return ConfigReader.read(Optional.empty(), environment, all, Path.of("/opt/space"));
  }
}
