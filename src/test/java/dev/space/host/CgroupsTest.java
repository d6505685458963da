package dev.space.host;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CgroupsTest {

  @TempDir Path root;

  private Path top(String controllers) throws Exception {
    Path top = Files.createDirectories(root.resolve("sys/fs/cgroup"));
    Files.writeString(top.resolve("cgroup.controllers"), controllers + "\n");
    return top;
  }

  @Test
  void aHostWithoutVersionTwoHasNone() throws Exception {
    assertThat(Cgroups.open(root, "space")).isEmpty();
    Files.createDirectories(root.resolve("sys/fs/cgroup/memory"));
    assertThat(Cgroups.open(root, "space")).isEmpty();
    top("cpuset io");
    assertThat(Cgroups.open(root, "space")).isEmpty();
  }

  @Test
  void everyVmGetsALeafThatIsRemovedAgain() throws Exception {
    Path top = top("cpuset cpu io memory pids");
    Cgroups groups = Cgroups.open(root, "space").orElseThrow();
    assertThat(top.resolve("cgroup.subtree_control")).hasContent("+pids");
    Path leaf = groups.make("vm1", 2, 1L << 30).orElseThrow();
    assertThat(leaf).isEqualTo(top.resolve("space/vm1")).isDirectory();
    groups.remove("vm1");
    groups.remove("vm1");
    assertThat(leaf).doesNotExist();
  }

  @Test
  void boundsAreThoseOfTheGuestAndItsMonitor() throws Exception {
    Path top = top("cpu memory");
    Cgroups groups = Cgroups.open(root, "space").orElseThrow();
    Path leaf = Files.createDirectories(top.resolve("space/vm1"));
    for (String file : new String[] {"cpu.weight", "memory.max", "pids.max"}) {
      Files.createFile(leaf.resolve(file));
    }
    assertThat(groups.make("vm1", 2, 1L << 30)).isEqualTo(Optional.of(leaf));
    assertThat(leaf.resolve("cpu.weight")).hasContent("200");
    assertThat(leaf.resolve("memory.max")).hasContent(Long.toString((1L << 30) + (1536L << 20)));
    assertThat(leaf.resolve("pids.max")).hasContent("66");
  }

  @Test
  void leavesOfVmsThatAreGoneAreSwept() throws Exception {
    Path top = top("cpu memory");
    Cgroups groups = Cgroups.open(root, "space").orElseThrow();
    Path busy = Files.createDirectories(top.resolve("space/busy"));
    Files.writeString(busy.resolve("cgroup.events"), "populated 1\nfrozen 0\n");
    groups.sweep();
    assertThat(busy).isDirectory();
  }
}
