package dev.space.vmm.firecracker;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.vm.VmExit;
import dev.space.vmm.firecracker.FirecrackerSettings.DiskRate;
import dev.space.vmm.firecracker.Phase.Call;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// The parts that need no process.
class FirecrackerPartsTest {

  @TempDir Path dir;

  private static final List<Phase> PHASES =
      List.of(Phase.FRESH, Phase.DESCRIBED, Phase.RUNNING, Phase.PAUSED);

  /// For each call where it leads to from each phase above; `-` where it is refused.
  private static final Map<Call, String> TABLE =
      Map.of(
          Call.OBSERVE, "Fresh Described - -",
          Call.DESCRIBE, "Described Described - -",
          Call.BOOT, "- Running - -",
          Call.LOAD, "Paused - - -",
          Call.PAUSE, "- - Paused Paused",
          Call.RESUME, "- - Running Running",
          Call.ADJUST, "- - Running Paused",
          Call.SAVE, "- - - Paused",
          Call.READ, "Fresh Described Running Paused");

  @Test
  void phasesFollowTheTable() {
    assertThat(TABLE).containsOnlyKeys(Call.values());
    TABLE.forEach(
        (call, row) -> {
          String[] to = row.split(" ");
          for (int i = 0; i < to.length; i++) {
            Phase from = PHASES.get(i);
            if (to[i].equals("-")) {
              assertThatThrownBy(() -> from.after(call))
                  .as("%s %s", from, call)
                  .isInstanceOf(SpaceException.class);
            } else {
              assertThat(from.after(call).getClass().getSimpleName())
                  .as("%s %s", from, call)
                  .isEqualTo(to[i]);
            }
          }
          assertThatThrownBy(() -> Phase.DEAD.after(call)).isInstanceOf(SpaceException.class);
        });
  }

  @ParameterizedTest
  @CsvSource({
    "Firecracker exiting successfully. exit_code=0, 0",
    "Firecracker exiting with error. exit_code=148, 148",
    "Shutting down VM after intercepting a bad syscall (56)., 148",
    "'Shutting down VM after intercepting signal 7, code 128.', 149",
    "Shutting down VM after intercepting signal 31, 148",
    "nothing of it, -1"
  })
  void lastWordsTellTheStatus(String log, int status) {
    assertThat(ExitCause.status("x\n" + log + "\n")).isEqualTo(status);
  }

  @Test
  void theConsoleTellsAPanicFromAPowerOff() {
    assertThat(ExitCause.of(0, "", "Kernel panic - not syncing").kind())
        .isEqualTo(VmExit.Kind.PANICKED);
    assertThat(ExitCause.of(0, "", "").kind()).isEqualTo(VmExit.Kind.STOPPED);
    VmExit taken = ExitCause.of(148, "seccomp", "");
    assertThat(taken.kind()).isEqualTo(VmExit.Kind.VMM_DIED);
    assertThat(taken.detail()).contains("forbidden system call", "148", "seccomp");
    assertThat(Halts.halted("[ 2.1] reboot: Power down\n")).isTrue();
    assertThat(Halts.halted("nothing")).isFalse();
  }

  @Test
  void versionsAreReadAndCompared() {
    FirecrackerVersion v = FirecrackerVersion.parse("Firecracker v1.17.0-dev\n\n", "v11.0.0\n");
    assertThat(v.full()).isEqualTo("1.17.0-dev");
    assertThat(v.snapshotFormat()).isEqualTo("11.0.0");
    assertThat(v.release()).isEqualTo("1.17");
    assertThat(v.atLeast(1, 16, 1)).isTrue();
    assertThat(v.atLeast(1, 17, 1)).isFalse();
    assertThat(v.atLeast(2, 0, 0)).isFalse();
    assertThatThrownBy(() -> FirecrackerVersion.parse("QEMU emulator version 7.2", "v1.0.0"))
        .isInstanceOf(SpaceException.class);
  }

  private static Compatibility compatibility() {
    return new Compatibility("1.16", "10.0.0", "GenuineIntel-6-85-7", "0x1", "6.1");
  }

  @Test
  void differencesAreNamed() {
    Compatibility here = compatibility();
    assertThat(here.differenceFrom(compatibility())).isEmpty();
    assertThat(
            here.differenceFrom(
                new Compatibility("1.15", "9.0.0", "GenuineIntel-6-85-7", "0x1", "6.1")))
        .contains(
            "it was saved with Firecracker 1.15, this is 1.16;"
                + " it was saved with snapshot format 9.0.0, this is 10.0.0");
    FirecrackerVersion version = FirecrackerVersion.parse("Firecracker v1.16.1", "v10.0.0");
    assertThat(Compatibility.here(version, Path.of("/proc")).word())
        .startsWith("firecracker-1.16-10.0.0-");
    assertThat(Compatibility.here(version, dir).cpu()).isEqualTo("unknown-0-0-0");
  }

  @Test
  void aStateIsReadAsItWasWrittenOrNotAtAll() throws Exception {
    Path file = dir.resolve("state");
    var manifest = new StateFile.Manifest(1, "1.16.1", compatibility(), new DiskRate(100, 0));
    byte[] state = {1, 2, 3, 4, 5};
    StateFile.write(file, manifest, state);
    StateFile.Content content = StateFile.read(file);
    assertThat(content.manifest()).isEqualTo(manifest);
    assertThat(content.state()).isEqualTo(state);
    byte[] whole = Files.readAllBytes(file);
    for (int at = 0; at < whole.length; at++) {
      byte[] bent = whole.clone();
      bent[at] ^= 1;
      Files.write(file, bent);
      assertThatThrownBy(() -> StateFile.read(file))
          .isInstanceOfSatisfying(
              SpaceException.class,
              e -> assertThat(e.code()).isEqualTo(ErrorCode.SNAPSHOT_DAMAGED));
      Files.write(file, java.util.Arrays.copyOf(whole, at));
      assertThatThrownBy(() -> StateFile.read(file)).isInstanceOf(SpaceException.class);
    }
  }

  @Test
  void newerFieldsAreLeftOutForOlderVersions() {
    var old =
        new Description(FirecrackerVersion.parse("Firecracker v1.16.1", "v1.0.0"), DiskRate.NONE);
    var next =
        new Description(FirecrackerVersion.parse("Firecracker v1.17.0", "v1.0.0"), DiskRate.NONE);
    assertThat(old.metrics("a")).doesNotContainKey("emit_id");
    assertThat(next.metrics("a")).containsEntry("emit_id", true);
    assertThat(old.drive("vdb", false)).doesNotContainKey("rate_limiter");
  }

  @Test
  void countersAddUpWhatIsNewInEachFile() throws Exception {
    Path metrics = dir.resolve("metrics");
    Files.writeString(metrics, "{\"block\":{\"read_bytes\":5}}\n{\"block\":{\"read_bytes\":2");
    Counters counters = new Counters();
    counters.add(metrics);
    assertThat(counters.now()).containsEntry("block_read_bytes", 5L);
    assertThat(counters.now()).containsEntry("block_read_bytes", 5L);
    Files.writeString(
        metrics,
        "0,\"write_bytes\":-4}}\nnonsense\n{\"vcpu\":{\"failures\":1}}\n",
        java.nio.file.StandardOpenOption.APPEND);
    assertThat(counters.now())
        .containsEntry("block_read_bytes", 25L)
        .containsEntry("block_write_bytes", 0L)
        .containsEntry("vcpu_failures", 1L);
    Files.writeString(metrics, "{\"block\":{\"read_bytes\":1}}\n");
    counters.remove(metrics);
    assertThat(counters.now()).containsEntry("block_read_bytes", 26L);
  }

  @Test
  void holesOfAPageAreTold() throws Exception {
    assertThat(Memory.keepsHoles(dir)).isTrue();
    assertThat(dir).isEmptyDirectory();
  }
}
