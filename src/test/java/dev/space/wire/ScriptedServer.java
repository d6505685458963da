package dev.space.wire;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/// A server that does with each connection what the test says, byte by byte.
final class ScriptedServer implements AutoCloseable {

  @FunctionalInterface
  interface Script {
    void play(Peer peer) throws Exception;
  }

  /// The server's end of a connection.
  static final class Peer {
    private final InputStream in;
    private final OutputStream out;

    Peer(SocketChannel channel) {
      in = Channels.newInputStream(channel);
      out = Channels.newOutputStream(channel);
    }

    /// Reads up to and with the empty line that ends a head.
    String head() throws IOException {
      ByteArrayOutputStream head = new ByteArrayOutputStream();
      while (!head.toString(StandardCharsets.ISO_8859_1).endsWith("\r\n\r\n")) {
        int c = in.read();
        if (c < 0) {
          return head.toString(StandardCharsets.ISO_8859_1);
        }
        head.write(c);
      }
      return head.toString(StandardCharsets.ISO_8859_1);
    }

    byte[] read(int n) throws IOException {
      return in.readNBytes(n);
    }

    /// Blocks until the client has gone.
    void awaitEnd() throws IOException {
      in.transferTo(OutputStream.nullOutputStream());
    }

    void write(String text) throws IOException {
      write(text.getBytes(StandardCharsets.UTF_8));
    }

    void write(byte[] bytes) throws IOException {
      out.write(bytes);
      out.flush();
    }
  }

  private final ServerSocketChannel listener;

  private ScriptedServer(ServerSocketChannel listener, Script script) {
    this.listener = listener;
    Thread.ofVirtual()
        .start(
            () -> {
              while (listener.isOpen()) {
                try {
                  SocketChannel channel = listener.accept();
                  Thread.ofVirtual().start(() -> serve(channel, script));
                } catch (IOException e) {
                  return;
                }
              }
            });
  }

  private static void serve(SocketChannel channel, Script script) {
    try (channel) {
      script.play(new Peer(channel));
    } catch (Exception e) {
      // The client's view is what tests look at.
    }
  }

  static ScriptedServer tcp(Script script) throws IOException {
    ServerSocketChannel listener = ServerSocketChannel.open();
    listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    return new ScriptedServer(listener, script);
  }

  static ScriptedServer unix(Path path, Script script) throws IOException {
    ServerSocketChannel listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    listener.bind(UnixDomainSocketAddress.of(path));
    return new ScriptedServer(listener, script);
  }

  WireClient client() throws IOException {
    return new WireClient(
        switch (listener.getLocalAddress()) {
          case UnixDomainSocketAddress unix -> new Endpoint.Unix(unix.getPath());
          case InetSocketAddress inet -> new Endpoint.Tcp("127.0.0.1", inet.getPort());
          default -> throw new AssertionError("unknown kind of address");
        });
  }

  @Override
  public void close() throws IOException {
    listener.close();
  }
}
