package dev.space.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.host.Prerequisite.State;
import dev.space.host.ProductionHost.Service;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ProductionHostTest {

  private static final String SMT = "sys/devices/system/cpu/smt/active";
  private static final String BUGS = "sys/devices/system/cpu/vulnerabilities/";

  /// A host on which nothing is to be done.
  private static final Map<String, String> GOOD =
      Map.ofEntries(
          Map.entry("proc/sys/kernel/osrelease", "6.1.0-57-amd64"),
          Map.entry(
              "proc/cpuinfo",
              "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\nmodel name\t: X\nstepping\t: 6\n"
                  + "microcode\t: 0xd0003d1\nflags\t\t: fpu vmx sse\n"),
          Map.entry("proc/cmdline", "root=/dev/sda1 quiet loglevel=1"),
          Map.entry("proc/meminfo", "MemTotal: 1 kB\nHugePages_Total:       0\n"),
          Map.entry(
              "proc/mounts",
              "/dev/sda1 / ext4 rw 0 0\n/dev/sdb1 /var/lib xfs rw 0 0\n"
                  + "cgroup2 /sys/fs/cgroup cgroup2 rw,favordynmods 0 0"),
          Map.entry("proc/swaps", "Filename Type Size Used Priority"),
          Map.entry("proc/sys/fs/file-max", "9223372036854"),
          Map.entry("proc/sys/kernel/pid_max", "4194304"),
          Map.entry("proc/sys/kernel/printk", "1\t4\t1\t7"),
          Map.entry("proc/sys/kernel/randomize_va_space", "2"),
          Map.entry("proc/sys/kernel/seccomp/actions_avail", "kill_process kill_thread trap errno"),
          Map.entry("proc/sys/kernel/threads-max", "100000"),
          Map.entry("proc/sys/vm/overcommit_memory", "1"),
          Map.entry("sys/devices/system/edac/mc/mc0/size_mb", "1"),
          Map.entry("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids"),
          Map.entry("sys/kernel/mm/ksm/run", "0"),
          Map.entry("sys/module/kvm/parameters/min_timer_period_us", "200"),
          Map.entry("sys/module/kvm/parameters/nx_huge_pages", "never"),
          Map.entry(SMT, "0"),
          Map.entry(BUGS + "itlb_multihit", "Not affected"),
          Map.entry(BUGS + "l1tf", "Mitigation: PTE Inversion; VMX: flush, SMT disabled"),
          Map.entry("dev/kvm", ""),
          Map.entry("etc/passwd", "root:x:0:0::/root:/bin/sh\n"),
          Map.entry("etc/subuid", "somebody:100000:65536\n"));

  @TempDir private Path root;

  @BeforeEach
  void good() throws IOException {
    for (var file : GOOD.entrySet()) {
      is(file.getKey(), file.getValue());
    }
  }

  private void is(String path, String text) throws IOException {
    Path file = root.resolve(path);
    Files.createDirectories(file.getParent());
    Files.writeString(file, text + "\n");
  }

  private List<Prerequisite> look(Service service) {
    return new ProductionHost(service, root).look();
  }

  private List<Prerequisite> look() {
    return look(new Service(true, 200_000, 1000, Path.of("/var/lib/space")));
  }

  private static Prerequisite named(List<Prerequisite> all, String name) {
    return all.stream().filter(p -> p.name().equals(name)).findFirst().orElseThrow();
  }

  @Test
  void aGoodHostHasNothingToDo() {
    assertThat(look()).filteredOn(p -> p.state() != State.OK).isEmpty();
  }

  /// Each point by itself: a file, what it says, and what becomes of the point.
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "proc/sys/kernel/osrelease | 4.19.0 | host kernel | MISSING",
        "proc/sys/kernel/osrelease | 6.12.1 | host kernel | WARN",
        "proc/cpuinfo | flags : fpu hypervisor | hardware | WARN",
        "proc/cpuinfo | flags : fpu | microcode | WARN",
        "sys/devices/system/cpu/smt/active | 1 | smt | MISSING",
        "sys/devices/system/cpu/vulnerabilities/mds | Vulnerable: no microcode | cpu vulnerabilities | MISSING",
        "sys/devices/system/cpu/vulnerabilities/mds | Mitigation: Clear; SMT vulnerable | cpu vulnerabilities | WARN",
        "proc/cmdline | quiet mitigations=off | cpu vulnerabilities | MISSING",
        "sys/kernel/mm/ksm/run | 1 | ksm | MISSING",
        "proc/sys/kernel/randomize_va_space | 0 | address randomisation | MISSING",
        "proc/sys/kernel/seccomp/actions_avail | errno | seccomp | MISSING",
        "sys/fs/cgroup/cgroup.controllers | cpu io pids | cgroup v2 | MISSING",
        "proc/sys/kernel/osrelease | 5.10.200 | cgroup v2 | WARN",
        "proc/mounts | cgroup2 /sys/fs/cgroup cgroup2 rw 0 0 | cgroup favordynmods | WARN",
        "sys/module/kvm/parameters/nx_huge_pages | Y | kvm nx_huge_pages | WARN",
        "sys/module/kvm/parameters/min_timer_period_us | 0 | kvm min_timer_period_us | WARN",
        "etc/passwd | eve:x:200005:1::/:/bin/sh | jailer user range | MISSING",
        "etc/subuid | eve:150000:65536 | jailer user range | MISSING",
        "proc/sys/kernel/pid_max | 4096 | kernel limits | WARN",
        "proc/sys/vm/overcommit_memory | 2 | memory overcommit | MISSING",
        "proc/meminfo | HugePages_Total: 64 | huge pages | WARN",
        "proc/mounts | /dev/sda1 / ext4 rw 0 0 | data file system | WARN",
        "proc/sys/kernel/printk | 7 4 1 7 | kernel console | WARN",
      })
  void aPointThatIsNotAsItShouldBe(String path, String text, String name, State state)
      throws IOException {
    is(path, text);
    Prerequisite found = named(look(), name);
    assertThat(found.state()).as(found.found()).isEqualTo(state);
    assertThat(found.remedy()).isPresent();
  }

  @Test
  void swapIsNamedByTheNumberOfItsAreas() throws IOException {
    is("proc/swaps", "Filename Type\n/dev/sda2 partition\n/swap file");
    Prerequisite found = named(look(), "swap");
    assertThat(found.state()).isEqualTo(State.MISSING);
    assertThat(found.found()).startsWith("2 areas");
  }

  @Test
  void whatIsNotThereIsSaidAndThrowsNothing() throws IOException {
    Path nothing = Files.createDirectory(root.resolve("nothing"));
    Service service = new Service(false, 200_000, 10, Path.of("/" + "d".repeat(100)));
    List<Prerequisite> all = new ProductionHost(service, nothing).look();
    assertThat(all).allSatisfy(p -> assertThat(p.found()).isNotBlank());
    assertThat(named(all, "/dev/kvm").state()).isEqualTo(State.MISSING);
    assertThat(named(all, "jailer rights").state()).isEqualTo(State.MISSING);
    assertThat(named(all, "vsock and api paths").remedy().orElseThrow()).contains("bytes shorter");
  }

  @Test
  void numbersOfTheKernelAreReadWhole() {
    assertThat(new HostFiles(Path.of("/")).number("proc/sys/kernel/pid_max").orElseThrow())
        .isGreaterThanOrEqualTo(ProcessHandle.current().pid());
  }

  @Test
  void theChecklistHasEveryPoint() throws IOException {
    String page = Files.readString(Path.of("docs/firecracker-host.md"));
    assertThat(look()).allSatisfy(p -> assertThat(page).contains("| `" + p.name() + "` |"));
  }
}
