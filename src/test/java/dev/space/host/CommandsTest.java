package dev.space.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.host.Commands.Command;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CommandsTest {

  private static final Duration LIMIT = Duration.ofSeconds(20);

  private final Commands commands = new Commands(Map.of("SECRET", "s3cret", "HOME", "/root"));

  @Test
  void givesLinesAndStatus() {
    List<String> lines = new ArrayList<>();
    Commands.Finished finished =
        commands.run(
            Command.of(LIMIT, "sh", "-c", "echo one; echo two >&2; printf three; exit 7"),
            lines::add);
    assertThat(finished.status()).isEqualTo(7);
    assertThat(lines).containsExactly("one", "two", "three");
  }

  @Test
  void passesNothingOfTheDaemonsEnvironmentOn() {
    Commands.Finished finished = commands.run(Command.of(LIMIT, "env"));
    assertThat(finished.said()).contains("LC_ALL=C.UTF-8").doesNotContain("s3cret");
  }

  @Test
  void aMissingToolIsNamed() {
    assertThatThrownBy(() -> commands.run(Command.of(LIMIT, "no-such-tool")))
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
                commands.run(
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
                    commands.run(
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
}
