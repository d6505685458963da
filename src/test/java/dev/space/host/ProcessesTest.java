package dev.space.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProcessesTest {

  private static final Duration LIMIT = Duration.ofSeconds(20);

  private final Processes processes = new Processes(Map.of("SECRET", "s3cret", "HOME", "/root"));

  @Test
  void givesLinesAndStatus() {
    List<String> lines = new ArrayList<>();
    Processes.Finished finished =
        processes.run(
            Command.of(LIMIT, "sh", "-c", "echo one; echo two >&2; printf three; exit 7"),
            lines::add);
    assertThat(finished.status()).isEqualTo(7);
    assertThat(lines).containsExactly("one", "two", "three");
  }

  @Test
  void passesNothingOfTheDaemonsEnvironmentOn() {
    Processes.Finished finished = processes.run(Command.of(LIMIT, "env"));
    assertThat(finished.said()).contains("LC_ALL=C.UTF-8").doesNotContain("s3cret");
  }

  @Test
  void aMissingToolIsNamed() {
    assertThatThrownBy(() -> processes.run(Command.of(LIMIT, "no-such-tool")))
        .isInstanceOfSatisfying(
            SpaceException.class,
            e -> {
              assertThat(e.code()).isEqualTo(ErrorCode.PREREQUISITE_MISSING);
              assertThat(e.problem().detail()).contains("no-such-tool");
            });
  }

  @Test
  void atItsLimitTheWholeTreeEnds(@TempDir Path dir) {
    Path child = dir.resolve("child");
    assertThatThrownBy(
            () ->
                processes.run(
                    Command.of(
                        Duration.ofMillis(400),
                        "sh",
                        "-c",
                        "sleep 300 & echo $! > " + child + "; wait")))
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.DEADLINE_EXCEEDED));
    await().until(() -> !alive(child));
  }

  @Test
  void anInterruptEndsTheWholeTree(@TempDir Path dir) throws Exception {
    Path child = dir.resolve("child");
    Thread thread =
        Thread.ofVirtual()
            .start(
                () -> {
                  try {
                    processes.run(
                        Command.of(LIMIT, "sh", "-c", "sleep 300 & echo $! > " + child + "; wait"));
                  } catch (SpaceException _) {
                    // Cancelled, as it should be.
                  }
                });
    await().until(() -> Files.exists(child) && Files.size(child) > 1);
    thread.interrupt();
    assertThat(thread.join(Duration.ofSeconds(10))).isTrue();
    await().until(() -> !alive(child));
  }

  private static boolean alive(Path pidFile) throws Exception {
    return ProcessHandle.of(Long.parseLong(Files.readString(pidFile).strip()))
        .filter(ProcessHandle::isAlive)
        .isPresent();
  }

  @Test
  void anInterruptThatCameBeforeIsSeen() {
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> processes.run(Command.of(LIMIT, "sleep", "60")))
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.CANCELLED));
    assertThat(Thread.interrupted()).isTrue();
  }

  @Test
  void onlyTheEndOfAnEndlessOutputIsKept() {
    Processes.Finished finished = processes.run(Command.of(LIMIT, "sh", "-c", "seq 100000"));
    assertThat(finished.tail()).hasSize(40).endsWith("100000");
  }

  @Test
  void aDetachedProgramIsNobodysChildAndWritesToItsLog(@TempDir Path dir) throws Exception {
    Path log = dir.resolve("log");
    ProcessIdentity program =
        processes.detach(
            Command.of(LIMIT, "sh", "-c", "echo hello; exec sleep 300").in(dir),
            log,
            0,
            Optional.empty());
    try {
      await().until(() -> Processes.tail(log).equals("hello\n"));
      assertThat(program.alive()).isTrue();
      assertThat(ProcessHandle.current().descendants().map(ProcessHandle::pid))
          .doesNotContain(program.pid());
    } finally {
      program.kill();
    }
    assertThat(program.awaitGone(LIMIT)).isTrue();
  }

  @Test
  void ownProcessIsAliveAndAnotherStartTimeIsAnotherProcess() {
    var self = ProcessIdentity.of(ProcessHandle.current().pid()).orElseThrow();
    assertThat(self.alive()).isTrue();
    assertThat(new ProcessIdentity(self.pid(), self.startTicks() + 1).alive()).isFalse();
    assertThat(self.cpuMillis()).isPositive();
    assertThat(ProcessIdentity.of(0)).isEmpty();
  }
}
