package dev.space.vmm.firecracker;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.wire.Watchdog;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;

/// Connections to a guest's port through Firecracker's vsock socket.
final class Vsock {

  /// Firecracker gives a guest two seconds to take a connection.
  private static final Duration DEADLINE = Duration.ofSeconds(3);

  private static final int ANSWER_BYTES_MAX = 32;

  private Vsock() {}

  /// Opens a stream to a port of the guest.
  ///
  /// @param user whom the process runs as, when that isn't who the daemon runs as
  /// @throws SpaceException VMM_FAILED when nobody listens there yet, or no answer comes
  static SocketChannel dial(Path socket, Optional<Integer> user, int port) {
    boolean done = false;
    SocketChannel channel = null;
    try {
      channel = SocketChannel.open(StandardProtocolFamily.UNIX);
      Watchdog dog = Watchdog.start(channel, Optional.of(DEADLINE), Optional.empty());
      try {
        shakeHands(channel, socket, user, port);
      } finally {
        dog.close();
      }
      done = true;
      return channel;
    } catch (IOException e) {
      throw Problem.of(ErrorCode.VMM_FAILED, "The agent's port can't be reached.")
          .because(String.valueOf(e.getMessage()))
          .toException(e);
    } finally {
      if (!done && channel != null) {
        close(channel);
      }
    }
  }

  private static void shakeHands(
      SocketChannel channel, Path socket, Optional<Integer> user, int port) throws IOException {
    channel.connect(UnixDomainSocketAddress.of(socket));
    Api.requirePeer(channel, user);
    // In one piece: what comes in several is dropped.
    ByteBuffer ask =
        ByteBuffer.wrap(("CONNECT " + port + "\n").getBytes(StandardCharsets.US_ASCII));
    int length = ask.remaining();
    if (channel.write(ask) != length) {
      throw new IOException("the socket takes no " + length + " bytes at once");
    }
    String answer = line(channel);
    if (!answer.startsWith("OK ")) {
      throw new IOException("it answered '" + answer + "'");
    }
  }

  /// A line, read byte by byte: what follows it is the guest's.
  private static String line(SocketChannel channel) throws IOException {
    ByteBuffer one = ByteBuffer.allocate(1);
    StringBuilder text = new StringBuilder(ANSWER_BYTES_MAX);
    while (channel.read(one.clear()) == 1) {
      char c = (char) (one.get(0) & 0xff);
      if (c == '\n') {
        return text.toString();
      }
      if (text.length() == ANSWER_BYTES_MAX) {
        throw new IOException("its answer is too long");
      }
      text.append(c);
    }
    throw new IOException("nobody in the guest listens yet");
  }

  private static void close(SocketChannel channel) {
    try {
      channel.close();
    } catch (IOException _) {
      // It is given up either way.
    }
  }
}
