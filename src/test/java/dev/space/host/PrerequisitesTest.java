package dev.space.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.core.error.Problem;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PrerequisitesTest {

  @TempDir private Path dir;

  private void tool(String name, String says) throws IOException {
    Path path = Files.createDirectories(dir.resolve("bin")).resolve(name);
    Files.writeString(path, "#!/bin/sh\necho '" + says + "'\n");
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rwxr-xr-x"));
  }

  private List<Prerequisite> look(Path data) {
    return look("qemu-system-x86_64", data);
  }

  private List<Prerequisite> look(String qemu, Path data) {
    return look(qemu, data, "root");
  }

  private List<Prerequisite> look(String qemu, Path data, String user) {
    Processes processes = new Processes(Map.of("PATH", dir.resolve("bin").toString()), List.of());
    return new Prerequisites(processes, qemu, data, dir.resolve("root"), user).look();
  }

  private void file(String path, String text) throws IOException {
    Path file = dir.resolve("root").resolve(path);
    Files.createDirectories(file.getParent());
    Files.writeString(file, text);
  }

  private static Prerequisite named(List<Prerequisite> all, String name) {
    return all.stream().filter(p -> p.name().equals(name)).findFirst().orElseThrow();
  }

  @Test
  @DisplayName(
      "behaviour 45: one message names all that is missing and the command that installs it")
  void oneMessageForAll() throws IOException {
    tool("apt-get", "");
    tool("dpkg-deb", "");
    tool("mke2fs", "mke2fs 1.42.13 (17-May-2015)");
    tool("qemu-system-x86_64", "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)");
    List<Prerequisite> all = look(dir.resolve("data"));
    assertThat(named(all, "qemu-system-x86_64").state()).isEqualTo(Prerequisite.State.OK);
    assertThat(named(all, "qemu-system-x86_64").found()).contains("7.2.22");
    assertThat(named(all, "mke2fs").found()).contains("1.42.13").contains("1.46");
    Problem problem = Prerequisite.problem(all).orElseThrow();
    assertThat(problem.detail()).contains("mke2fs", "mmdebstrap", "tar");
    assertThat(problem.remedy().orElseThrow())
        .contains("apt-get install -y --no-install-recommends coreutils e2fsprogs mmdebstrap tar");
  }

  @Test
  void theQemuThatIsConfiguredIsTheOneLookedAt() throws IOException {
    tool("qemu-system-x86_64", "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)");
    tool("my-qemu", "QEMU emulator version 10.0.2");
    String own = dir.resolve("bin/my-qemu").toString();
    assertThat(named(look(own, dir.resolve("data")), own).found()).contains("10.0.2");
    assertThat(look(own, dir.resolve("data")))
        .extracting(Prerequisite::name)
        .doesNotContain("qemu-system-x86_64");

    tool("my-qemu", "QEMU emulator version 5.2.0");
    Prerequisite old = named(look(own, dir.resolve("data")), own);
    assertThat(old.state()).isEqualTo(Prerequisite.State.MISSING);
    assertThat(old.found()).contains("5.2.0").contains("7.2");

    Prerequisite none = named(look("/nowhere/qemu", dir.resolve("data")), "/nowhere/qemu");
    assertThat(none.state()).isEqualTo(Prerequisite.State.MISSING);
    assertThat(none.remedy().orElseThrow()).contains("qemu.binary");
    assertThat(none.debPackage()).isEmpty();
  }

  @Test
  void aPathTooLongForSocketsIsRefusedWithTheFigure() {
    Prerequisite found = named(look(dir.resolve("d".repeat(100))), "data directory");
    assertThat(found.state()).isEqualTo(Prerequisite.State.MISSING);
    assertThat(found.remedy().orElseThrow()).contains("bytes shorter");
  }

  @Test
  void aDataDirectoryThatIsAFileIsRefused() throws IOException {
    Path file = Files.writeString(dir.resolve("file"), "");
    assertThat(named(look(file), "data directory").state()).isEqualTo(Prerequisite.State.MISSING);
  }

  @Test
  void theMachineIsReadFromItsFiles() throws IOException {
    Path root = dir.resolve("root");
    Files.createDirectories(root.resolve("proc"));
    Files.writeString(root.resolve("proc/meminfo"), "MemTotal: 9 kB\nMemAvailable: 1000000 kB\n");
    Files.createDirectories(root.resolve("sys/fs/cgroup"));
    Files.writeString(root.resolve("sys/fs/cgroup/cgroup.controllers"), "cpuset cpu io memory\n");
    List<Prerequisite> all = look(dir.resolve("data"));
    assertThat(named(all, "free memory").state()).isEqualTo(Prerequisite.State.WARN);
    assertThat(named(all, "cgroup v2").state()).isEqualTo(Prerequisite.State.OK);
    assertThat(named(all, "/dev/kvm").state()).isEqualTo(Prerequisite.State.WARN);
  }

  @Test
  void aHostWithoutCgroupsIsWarnedNotRefused() {
    assertThat(named(look(dir.resolve("data")), "cgroup v2").state())
        .isEqualTo(Prerequisite.State.WARN);
  }

  @Test
  void aUserIsToldTheOneCommandForPackagesAndTheNextFreeRangeOfIds() throws IOException {
    tool("unshare", "");
    file("etc/subuid", "ann:100000:65536\nbob:165536:65536\njoe:231072:10\n");
    file("etc/subgid", "ann:100000:65536\nodd line\n");
    List<Prerequisite> all = look("qemu-system-x86_64", dir.resolve("data"), "joe");
    assertThat(named(all, "user namespaces").state()).isEqualTo(Prerequisite.State.OK);
    assertThat(Prerequisite.problem(all).orElseThrow().remedy().orElseThrow())
        .contains("Run as root: apt-get update && apt-get install", " uidmap")
        .contains("usermod --add-subuids 231082-296617 --add-subgids 231082-296617 joe");
  }

  @Test
  void aUserWithIdsAndNamespacesLacksNothingOfThem() throws IOException {
    tool("unshare", "");
    tool("newuidmap", "");
    file("etc/subuid", "joe:100000:65536\n");
    file("etc/subgid", "joe:100000:65536\n");
    List<Prerequisite> all = look("qemu-system-x86_64", dir.resolve("data"), "joe");
    for (String name : List.of("newuidmap", "subordinate ids", "user namespaces")) {
      assertThat(named(all, name).state()).as(name).isEqualTo(Prerequisite.State.OK);
    }
    assertThat(look("qemu-system-x86_64", dir.resolve("data"), "root"))
        .noneMatch(p -> p.name().equals("newuidmap"));
  }

  @Test
  void aKernelThatForbidsUserNamespacesIsToldWithItsSetting() throws IOException {
    Path unshare = Files.createDirectories(dir.resolve("bin")).resolve("unshare");
    Files.writeString(unshare, "#!/bin/sh\necho 'Operation not permitted'; exit 1\n");
    Files.setPosixFilePermissions(unshare, PosixFilePermissions.fromString("rwxr-xr-x"));
    file("proc/sys/kernel/unprivileged_userns_clone", "0\n");
    Prerequisite found =
        named(look("qemu-system-x86_64", dir.resolve("data"), "joe"), "user namespaces");
    assertThat(found.state()).isEqualTo(Prerequisite.State.MISSING);
    assertThat(found.remedy().orElseThrow()).contains("kernel.unprivileged_userns_clone=1");
  }

  @Test
  void theLauncherKnowsEveryPackageThatIsAskedFor() throws IOException {
    String listed = Files.readString(Path.of("launcher/packages"));
    // These are on every Debian: without them nothing comes as far as the launcher.
    List<String> essential = List.of("apt", "coreutils");
    for (String name :
        Prerequisite.missingPackages(look("qemu-system-x86_64", dir.resolve("data"), "joe"))) {
      assertThat(essential.contains(name) || listed.contains(" " + name + "\n")).as(name).isTrue();
    }
  }
}
