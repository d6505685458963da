package dev.space.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// On a cgroup v2 hierarchy of the kernel's own, mounted for the test. Which controllers it has
/// depends on what the host's version 1 has left; what is tested here needs none.
class RealCgroupsTest {

  private static final Duration LIMIT = Duration.ofSeconds(20);

  /// Processes that start others: a leaf holds them all.
  private static final String FAMILY = "sleep 600 & (sleep 600 & sleep 600) & wait";

  @TempDir private Path dir;

  private final Processes processes = new Processes(System.getenv());
  private final String name = "space-test-" + UUID.randomUUID();
  private Path top = Path.of("/");
  private boolean mounted;
  private Optional<Cgroups> opened = Optional.empty();

  private Cgroups groups() {
    return opened.orElseThrow();
  }

  @BeforeEach
  void mount() throws IOException {
    top = Files.createDirectory(dir.resolve("cgroup"));
    assumeThat(System.getProperty("user.name")).as("only root may mount").isEqualTo("root");
    mounted =
        processes.run(Command.of(LIMIT, "mount", "-t", "cgroup2", "none", top.toString())).ok();
    assumeThat(mounted).as("this host mounts no cgroup2").isTrue();
    opened = Cgroups.open(top, name, List.of());
  }

  @AfterEach
  void unmount() throws IOException {
    if (!mounted) {
      return;
    }
    for (String id : List.of("vm1", "vm2")) {
      groups().kill(id);
      await().atMost(LIMIT).until(() -> processes(id).isEmpty());
      groups().remove(id);
    }
    Files.deleteIfExists(top.resolve(name));
    processes.run(Command.of(LIMIT, "umount", top.toString()));
  }

  private Path leaf(String id) {
    return top.resolve(name).resolve(id);
  }

  private List<String> processes(String id) throws IOException {
    Path file = leaf(id).resolve("cgroup.procs");
    return Files.exists(file) ? Files.readAllLines(file) : List.of();
  }

  private ProcessIdentity start(String id) throws IOException {
    Optional<Path> leaf = groups().make(id, 1, 1L << 30);
    assertThat(leaf).contains(leaf(id));
    ProcessIdentity process =
        processes.detach(
            Command.of(LIMIT, "sh", "-c", FAMILY).env(Map.of()), dir.resolve(id), 0, leaf);
    await().atMost(LIMIT).until(() -> processes(id).size() >= 4);
    return process;
  }

  @Test
  void killingALeafEndsAllThatRunsInItAndNothingElse() throws IOException {
    assumeThat(top.resolve(name).resolve("cgroup.kill")).as("Linux 5.14").exists();
    ProcessIdentity one = start("vm1");
    ProcessIdentity other = start("vm2");
    assertThat(processes("vm1")).contains(Long.toString(one.pid()));

    groups().remove("vm1");
    assertThat(leaf("vm1")).as("a leaf that is in use stays").isDirectory();

    groups().kill("vm1");
    await().atMost(LIMIT).until(() -> processes("vm1").isEmpty());
    await().atMost(LIMIT).until(() -> !one.alive());
    assertThat(other.alive()).isTrue();
    assertThat(processes("vm2")).hasSizeGreaterThanOrEqualTo(4);

    groups().remove("vm1");
    assertThat(leaf("vm1")).doesNotExist();
  }

  @Test
  void aSweepTakesTheLeavesOfWhatIsGone() throws IOException {
    start("vm1");
    start("vm2");
    groups().kill("vm1");
    await().atMost(LIMIT).until(() -> processes("vm1").isEmpty());
    groups().sweep();
    assertThat(leaf("vm1")).doesNotExist();
    assertThat(leaf("vm2")).isDirectory();
  }

  @Test
  void aLeafThatIsNotThereIsNoError() {
    groups().kill("never");
    groups().remove("never");
    assertThat(leaf("never")).doesNotExist();
  }
}
