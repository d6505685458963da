package dev.space.app;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/// Stands in for the names that clients would look up: an HTTP proxy that leads every `CONNECT`,
/// whatever it names, to one port of this machine. What is said through it stays between the ends.
final class LoopbackProxy implements AutoCloseable {

  private final ServerSocket server;
  private final InetSocketAddress target;
  private final Set<Socket> open = ConcurrentHashMap.newKeySet();

  LoopbackProxy(int port) throws IOException {
    this.target = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
    this.server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    Thread.ofVirtual().name("proxy").start(this::accept);
  }

  InetSocketAddress address() {
    return new InetSocketAddress(InetAddress.getLoopbackAddress(), server.getLocalPort());
  }

  String url() {
    return "http://127.0.0.1:" + server.getLocalPort();
  }

  private void accept() {
    while (!server.isClosed()) {
      try {
        Socket client = server.accept();
        open.add(client);
        Thread.ofVirtual().name("proxy-client").start(() -> serve(client));
      } catch (IOException _) {
        // Closed.
      }
    }
  }

  private void serve(Socket client) {
    try (client;
        Socket to = new Socket()) {
      // Byte by byte: what follows the head belongs to the tunnel.
      var head = new StringBuilder();
      while (!head.toString().endsWith("\r\n\r\n")) {
        int c = client.getInputStream().read();
        if (c < 0 || head.length() > 8192) {
          return;
        }
        head.append((char) c);
      }
      if (!head.toString().startsWith("CONNECT ")) {
        client
            .getOutputStream()
            .write("HTTP/1.1 405 No\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
        return;
      }
      open.add(to);
      to.connect(target);
      client.getOutputStream().write("HTTP/1.1 200 Go\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
      Thread back = Thread.ofVirtual().name("proxy-back").start(() -> pump(to, client));
      pump(client, to);
      back.join();
    } catch (IOException _) {
      // Either end is gone.
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static void pump(Socket from, Socket to) {
    try {
      from.getInputStream().transferTo(to.getOutputStream());
      to.shutdownOutput();
    } catch (IOException e) {
      // A connection that was cut is cut on the other side too.
      try {
        to.setSoLinger(true, 0);
        to.close();
      } catch (IOException _) {
        // It is gone already.
      }
    }
  }

  @Override
  public void close() throws IOException {
    server.close();
    for (Socket socket : open) {
      socket.close();
    }
  }
}
