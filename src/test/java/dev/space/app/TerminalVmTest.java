package dev.space.app;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// `space shell` in a real terminal on this machine, joined to one in a real VM.
@Tag("vm")
@Tag("slow")
@Timeout(180)
@ExtendWith(RealPlane.Shared.class)
class TerminalVmTest {

  private final RealPlane plane;

  TerminalVmTest(RealPlane plane) {
    this.plane = plane;
  }

  @ParameterizedTest
  @ValueSource(strings = {"work", "kill", "detach"})
  @DisplayName(
      "behaviour 15: sizes, Ctrl-C, Ctrl-D, Ctrl-Z; raw while it lasts and sane afterwards")
  void shell(String what, @TempDir Path dir) throws Exception {
    var python = new ProcessBuilder("python3", "--version").redirectErrorStream(true);
    assumeTrue(python.start().waitFor() == 0, "python3 drives the terminal");
    var command = new ArrayList<>(List.of("python3", "src/test/resources/terminal.py", what));
    command.addAll(plane.space("shell", plane.sandbox()));
    Path said = dir.resolve("said");
    Process driver = plane.process(said, command);
    assertThat(driver.waitFor(150, TimeUnit.SECONDS)).isTrue();
    assertThat(driver.exitValue()).as(Files.readString(said)).isZero();
  }
}
