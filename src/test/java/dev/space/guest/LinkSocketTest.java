package dev.space.guest;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.Seeded;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class LinkSocketTest {

  /// A SETTINGS frame with one setting, and a frame behind it.
  private static final byte[] BEGIN = {
    0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 5, 0, 0, 64, 0, 0, 0, 1, 0, 0, 0, 0, 0, 3, 42
  };

  @TempDir Path dir;
  private int sockets;

  /// What comes out of the socket when this goes into its other end, which is then closed.
  private byte[] read(byte[] before, byte[] then) {
    Path path = dir.resolve("s" + ++sockets);
    try (var server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      server.bind(UnixDomainSocketAddress.of(path));
      try (var here = SocketChannel.open(UnixDomainSocketAddress.of(path));
          var there = server.accept();
          var socket = new LinkSocket(here)) {
        Thread.ofVirtual()
            .start(
                () -> {
                  try {
                    there.write(ByteBuffer.wrap(before));
                    there.write(ByteBuffer.wrap(then));
                    there.shutdownOutput();
                  } catch (IOException e) {
                    throw new UncheckedIOException(e);
                  }
                });
        return socket.getInputStream().readAllBytes();
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  @DisplayName("behaviours 9, 22: what a connection before a suspend left is no part of the next")
  void staleBytesAreThrownAway() {
    assertThat(read(new byte[0], BEGIN)).isEqualTo(BEGIN);
    Seeded.times(
        200,
        input -> {
          byte[] stale = input.bytes(3000);
          for (int i = 0; i < stale.length; i++) {
            // Nothing that looks like the beginning.
            stale[i] |= 1;
          }
          assertThat(read(stale, BEGIN)).isEqualTo(BEGIN);
        });
    byte[] large = new byte[300_000];
    java.util.Arrays.fill(large, (byte) 'x');
    assertThat(read(large, BEGIN)).isEqualTo(BEGIN);
  }

  @Test
  void whatNeverBeginsIsEmpty() {
    assertThat(read(new byte[] {0, 0, 6, 4, 0}, new byte[0])).isEmpty();
  }
}
