package dev.space.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProcessesTest {

  private static final Duration SOON = Duration.ofSeconds(10);

  @TempDir Path dir;
  private Processes processes;

  @BeforeEach
  void open() {
    processes = new Processes(dir.resolve("scratch"));
  }

  @Test
  void outcomeHoldsStatusOutputAndMessages() {
    var outcome =
        processes.run(Command.of("sh", "-c", "cat; echo out; echo err >&2; exit 3"), SOON);
    assertThat(outcome).isEqualTo(new Processes.Outcome(3, "out\n", "err\n"));
    assertThat(dir.resolve("scratch")).isEmptyDirectory();
  }

  @Test
  void onlyTheEndOfAnEndlessOutputIsKept() {
    var outcome = processes.run(Command.of("sh", "-c", "yes | head -c 1000000; echo end"), SOON);
    assertThat(outcome.stdout()).hasSize(64 * 1024).endsWith("end\n");
  }

  @Test
  void childSeesNothingOfTheDaemonsEnvironmentButPathAndHome() {
    var secretive = new Processes(dir, name -> name.equals("PATH") ? "/usr/bin:/bin" : "secret");
    String env = secretive.check(Command.of("env").with(Map.of("MINE", "1")), SOON);
    assertThat(env.lines().map(line -> line.substring(0, line.indexOf('='))))
        .containsExactlyInAnyOrder("PATH", "LC_ALL", "HOME", "MINE");
  }

  @Test
  void deadlineKillsTheWholeTree() {
    Path pid = dir.resolve("pid");
    var command = Command.of("sh", "-c", "sleep 60 & echo $! > " + pid + "; wait");
    assertThatThrownBy(() -> processes.run(command, Duration.ofMillis(300)))
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.DEADLINE_EXCEEDED));
    long grandchild = Long.parseLong(Processes.tail(pid).strip());
    Optional<ProcessIdentity> left = ProcessIdentity.of(grandchild);
    assertThat(left.map(p -> p.awaitGone(SOON)).orElse(true)).isTrue();
  }

  @Test
  void interruptionKillsAndIsReportedAsCancelled() {
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> processes.run(Command.of("sleep", "60"), SOON))
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.CANCELLED));
    assertThat(Thread.interrupted()).isTrue();
  }

  @Test
  void missingProgramIsAPrerequisite() {
    assertThatThrownBy(() -> processes.run(Command.of("no-such-program"), SOON))
        .isInstanceOfSatisfying(
            SpaceException.class,
            e -> assertThat(e.code()).isEqualTo(ErrorCode.PREREQUISITE_MISSING));
  }

  @Test
  void failureCarriesTheProgramsMessage() {
    assertThatThrownBy(() -> processes.check(Command.of("sh", "-c", "echo why >&2; exit 1"), SOON))
        .hasMessageContaining("why");
  }

  @Test
  void outputAndMessagesCanGoToOneFile() {
    Path log = dir.resolve("log");
    processes.check(Command.of("sh", "-c", "echo a; echo b >&2").logging(log), SOON);
    assertThat(log).hasContent("a\nb\n");
  }

  @Test
  void ownProcessIsAliveAndAnotherStartTimeIsAnotherProcess() {
    var self = ProcessIdentity.of(ProcessHandle.current().pid()).orElseThrow();
    assertThat(self.alive()).isTrue();
    assertThat(new ProcessIdentity(self.pid(), self.startTicks() + 1).alive()).isFalse();
    assertThat(self.cpuMillis()).isPositive();
    assertThat(ProcessIdentity.of(0)).isEmpty();
  }

  @Test
  void copyKeepsHoles() throws Exception {
    Path from = dir.resolve("from");
    try (var file = new RandomAccessFile(from.toFile(), "rw")) {
      file.setLength(256L << 20);
      file.seek(100L << 20);
      file.write(new byte[] {1, 2, 3});
    }
    Path to = dir.resolve("to");
    new FileCopies(processes).copy(from, to);
    assertThat(Files.size(to)).isEqualTo(256L << 20);
    assertThat(Files.mismatch(from, to)).isEqualTo(-1);
    var blocks =
        processes.check(Command.of(List.of("stat", "-c", "%b", to.toString())), SOON).strip();
    assertThat(Long.parseLong(blocks) * 512).isLessThan(1L << 20);
  }

  @Test
  void failedCopyLeavesNothing() {
    assertThatThrownBy(() -> new FileCopies(processes).copy(dir.resolve("none"), dir.resolve("to")))
        .isInstanceOf(SpaceException.class);
    assertThat(dir.resolve("to")).doesNotExist();
  }
}
