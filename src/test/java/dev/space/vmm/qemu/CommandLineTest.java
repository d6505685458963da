package dev.space.vmm.qemu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.error.SpaceException;
import dev.space.core.template.Resources;
import dev.space.core.vm.VmSpec;
import dev.space.host.PlainText;
import dev.space.host.UserIds;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class CommandLineTest {

  private static final Path HOME = Path.of("/data/vms/a");
  private static final VmSpec SPEC =
      new VmSpec(
          "a", HOME, new Resources(2, 512, 64), Path.of("/data/root,1.img"), HOME.resolve("disk"));
  private static final QemuVersion V7 = QemuVersion.parse("QEMU emulator version 7.2.22 (Debian)");
  private static final QemuVersion V10 = QemuVersion.parse("QEMU emulator version 10.0.2");

  private static CommandLine line(QemuVersion version, Optional<Integer> user) {
    return new CommandLine("qemu", version, false, SPEC, user);
  }

  @Test
  void devicesOfABootAndOfARestoreAreTheSame() {
    var boot = line(V7, Optional.empty()).boot(Path.of("/k"), Path.of("/i"));
    var restore = line(V7, Optional.empty()).restore(Path.of("/image"));
    assertThat(devices(restore)).isEqualTo(devices(boot)).isNotEmpty();
    assertThat(restore).contains("-S").doesNotContain("-kernel");
  }

  private static List<String> devices(List<String> args) {
    return args.stream()
        .filter(a -> a.contains("virtio-") || a.startsWith("virtserialport") || a.startsWith("q35"))
        .toList();
  }

  @Test
  void memoryIsSharedAtABootAndPrivateAtARestore() {
    assertThat(line(V7, Optional.empty()).boot(Path.of("/k"), Path.of("/i")))
        .anyMatch(a -> a.contains("share=on,mem-path=memory"));
    assertThat(line(V7, Optional.empty()).restore(Path.of("/im,age")))
        .anyMatch(a -> a.contains("share=off,mem-path=/im,,age"));
  }

  @Test
  void pathsOfTheVmsOwnAreRelativeAndCommasDoubled() {
    assertThat(line(V7, Optional.empty()).restore(Path.of("/image")))
        .anyMatch(a -> a.endsWith("file.filename=disk"))
        .anyMatch(a -> a.endsWith("file.filename=/data/root,,1.img"))
        .anyMatch(a -> a.endsWith("path=agent.sock"));
  }

  @Test
  void theFilterDeniesAllThatItCan() {
    assertThat(line(V7, Optional.empty()).restore(Path.of("/i")))
        .contains("on,obsolete=deny,spawn=deny,resourcecontrol=deny,elevateprivileges=deny")
        .doesNotContain("-runas");
    assertThat(line(V7, Optional.of(200_001)).restore(Path.of("/i")))
        .containsSequence("-runas", "200001:200001");
    assertThat(line(V10, Optional.of(200_001)).restore(Path.of("/i")))
        .containsSequence("-run-with", "user=200001:200001");
  }

  @Test
  void whatIsNoQemuIsRefused() {
    assertThatThrownBy(() -> QemuVersion.parse("busybox")).isInstanceOf(SpaceException.class);
    assertThat(V10.atLeast(9, 1)).isTrue();
    assertThat(V7.atLeast(7, 2)).isTrue();
    assertThat(V7.atLeast(7, 3)).isFalse();
  }

  @Test
  void consoleTextIsMadePrintable() {
    assertThat(PlainText.of("a\u001b[1;31mb\r\n\u0000\tc")).isEqualTo("ab\n?\tc");
  }

  @Test
  void userIdsAreGivenOnceAndComeBack() {
    var ids = new UserIds(Optional.of(new UserIds.Range(1000, 2)));
    ids.adopt(1000);
    ids.adopt(5);
    assertThat(ids.take()).contains(1001);
    assertThatThrownBy(ids::take).isInstanceOf(SpaceException.class);
    ids.release(Optional.of(1000));
    assertThat(ids.take()).contains(1000);
    assertThat(new UserIds(Optional.empty()).take()).isEmpty();
  }
}
