package dev.space.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.jline.terminal.Size;
import org.junit.jupiter.api.Test;

class TerminalRunTest {

  @Test
  void aTerminalThatDoesNotSayItsSizeGetsTheUsualOne() {
    assertThat(TerminalRun.sizeOr80x24(Size.of(0, 0))).isEqualTo(Size.of(80, 24));
    assertThat(TerminalRun.sizeOr80x24(Size.of(120, 40))).isEqualTo(Size.of(120, 40));
  }
}
