package dev.space.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/// What `doctor` says of a machine on which nothing was set up, and of what it is configured to
/// use.
@Timeout(60)
class DoctorTest {

  @TempDir Path dir;

  private record Said(int status, JsonNode rows) {
    JsonNode row(String name) {
      for (JsonNode row : rows) {
        if (row.path("name").asString().equals(name)) {
          return row;
        }
      }
      throw new AssertionError("no row " + name + " in " + rows);
    }
  }

  private Said doctor(Map<String, String> env) {
    Map<String, String> all = new HashMap<>(System.getenv());
    all.keySet().removeIf(name -> name.startsWith("SPACE_"));
    all.put("SPACE_DATA_DIR", dir.resolve("data").toString());
    all.putAll(env);
    var out = new ByteArrayOutputStream();
    var surroundings =
        new Surroundings(
            all,
            new ByteArrayInputStream(new byte[0]),
            out,
            new PrintStream(OutputStream.nullOutputStream(), true, StandardCharsets.UTF_8),
            false,
            false,
            false,
            LocalService.HOME,
            InstantSource.system());
    int status = Main.run(surroundings, "doctor", "-o", "json");
    return new Said(status, Json.read(out.toString(StandardCharsets.UTF_8)));
  }

  @Test
  void withoutAGuestItIsNotKnownWhatIsolates() {
    Said said = doctor(Map.of());
    assertThat(said.status()).isEqualTo(ExitStatus.FAILURE);
    assertThat(said.row("isolation").path("state").asString()).isEqualTo("warn");
    assertThat(said.row("isolation").path("found").asString()).contains("not known yet");
    assertThat(said.row("isolation").path("remedy").asString()).contains("space setup");
    assertThat(dir.resolve("data")).doesNotExist();
  }

  @Test
  void theSimulatedDriverIsolatesNothingAndNeedsNothing() {
    Said said = doctor(Map.of("SPACE_VMM", "simulated"));
    assertThat(said.status()).isZero();
    assertThat(said.row("isolation").path("state").asString()).isEqualTo("warn");
    assertThat(said.row("isolation").path("found").asString())
        .startsWith("simulated")
        .contains("NO VM");
  }

  @Test
  void aQemuOfOnesOwnIsTheOneLookedAt() {
    Said said = doctor(Map.of("SPACE_QEMU_BINARY", "/nowhere/qemu"));
    assertThat(said.status()).isEqualTo(ExitStatus.FAILURE);
    assertThat(said.row("/nowhere/qemu").path("state").asString()).isEqualTo("missing");
    assertThat(said.row("/nowhere/qemu").path("remedy").asString()).contains("qemu.binary");
    assertThat(said.row("/nowhere/qemu").has("package")).isFalse();
  }
}
