package dev.space.wire;

import dev.space.wire.WireException.Fault;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.StandardProtocolFamily;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Optional;

/// One connection: buffered reading, plain writing, both under the watchdog.
final class Connection implements AutoCloseable {

  static final int BUFFER_BYTES = 64 * 1024;

  private final Endpoint endpoint;
  private final SocketChannel channel;
  private final Watchdog watchdog;
  private final ByteBuffer in = ByteBuffer.allocateDirect(BUFFER_BYTES).flip();

  private Connection(Endpoint endpoint, SocketChannel channel, Watchdog watchdog) {
    this.endpoint = endpoint;
    this.channel = channel;
    this.watchdog = watchdog;
  }

  static Connection open(Endpoint endpoint, Optional<Duration> deadline, Optional<Duration> silence)
      throws WireException {
    SocketChannel channel;
    try {
      channel =
          switch (endpoint) {
            case Endpoint.Unix _ -> SocketChannel.open(StandardProtocolFamily.UNIX);
            case Endpoint.Tcp _ -> SocketChannel.open();
          };
    } catch (IOException e) {
      throw new WireException(Fault.NOT_CONNECTED, "no socket could be made", e);
    }
    Connection connection =
        new Connection(endpoint, channel, Watchdog.start(channel, deadline, silence));
    try {
      channel.connect(endpoint.address());
      return connection;
    } catch (IOException | RuntimeException e) {
      WireException failure =
          connection.watchdog.fired()
              ? connection.failure("connecting to", e)
              : new WireException(
                  Fault.NOT_CONNECTED,
                  "no connection to " + endpoint + " (" + describe(e) + ")",
                  e);
      connection.close();
      throw failure;
    }
  }

  private static String describe(Exception e) {
    return switch (e) {
      case java.nio.channels.UnresolvedAddressException _ -> "the name is unknown";
      default -> e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
    };
  }

  /// The right error for an exception of the channel.
  WireException failure(String doing, Exception cause) {
    if (cause instanceof WireException already) {
      return already;
    }
    return watchdog.fired()
        ? new WireException(Fault.TIMED_OUT, endpoint + " did not answer in time", cause)
        : new WireException(
            Fault.CUT_OFF, doing + " " + endpoint + " failed (" + describe(cause) + ")", cause);
  }

  void write(byte[] bytes, int offset, int length) throws WireException {
    try {
      int end = offset + length;
      for (int at = offset; at < end; ) {
        ByteBuffer piece = ByteBuffer.wrap(bytes, at, Math.min(BUFFER_BYTES, end - at));
        at += channel.write(piece);
        // A long upload is not silence.
        watchdog.heard();
      }
    } catch (IOException e) {
      throw failure("writing to", e);
    }
  }

  void write(String ascii) throws WireException {
    byte[] bytes = ascii.getBytes(StandardCharsets.ISO_8859_1);
    write(bytes, 0, bytes.length);
  }

  /// Some bytes, or -1 at the end of the connection.
  int read(byte[] into, int offset, int length) throws WireException {
    if (!in.hasRemaining() && !fill()) {
      return -1;
    }
    int n = Math.min(length, in.remaining());
    in.get(into, offset, n);
    return n;
  }

  /// One byte, or -1 at the end of the connection.
  int read() throws WireException {
    if (!in.hasRemaining() && !fill()) {
      return -1;
    }
    return in.get() & 0xff;
  }

  private boolean fill() throws WireException {
    try {
      in.clear();
      int n = channel.read(in);
      in.flip();
      watchdog.heard();
      return n > 0;
    } catch (IOException e) {
      in.limit(0);
      throw failure("reading from", e);
    }
  }

  /// A line without its end; empty when the connection ended before its first byte.
  Optional<String> readLine(int bytesMax) throws WireException {
    ByteArrayOutputStream line = new ByteArrayOutputStream(128);
    while (true) {
      int c = read();
      if (c < 0) {
        if (line.size() == 0) {
          return Optional.empty();
        }
        throw new WireException(Fault.CUT_OFF, endpoint + " ended the connection inside a line");
      }
      if (c == '\n') {
        String text = line.toString(StandardCharsets.UTF_8);
        return Optional.of(text.endsWith("\r") ? text.substring(0, text.length() - 1) : text);
      }
      if (line.size() >= bytesMax) {
        throw new WireException(
            Fault.MALFORMED, "a line from " + endpoint + " is longer than " + bytesMax + " bytes");
      }
      line.write(c);
    }
  }

  /// What is left of the connection as a stream; it ends where the connection ends.
  InputStream rest() {
    return new InputStream() {
      @Override
      public int read() throws IOException {
        return Connection.this.read();
      }

      @Override
      public int read(byte[] into, int offset, int length) throws IOException {
        return length == 0 ? 0 : Connection.this.read(into, offset, length);
      }
    };
  }

  SocketChannel channel() {
    return channel;
  }

  Endpoint endpoint() {
    return endpoint;
  }

  void endWriting() throws WireException {
    try {
      channel.shutdownOutput();
    } catch (IOException e) {
      throw failure("writing to", e);
    }
  }

  @Override
  public void close() {
    watchdog.close();
    try {
      channel.close();
    } catch (IOException e) {
      // Nothing is lost: everything that counts was read, or its reader has its own error.
    }
  }
}
