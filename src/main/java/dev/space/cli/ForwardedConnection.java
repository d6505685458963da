package dev.space.cli;

import dev.space.wire.Endpoint;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/// One local connection whose one request goes to a port of a sandbox. The head is rewritten, all
/// else is carried byte by byte, so bodies stream and upgraded connections just work. Each request
/// has a connection of its own: both sides are told to close.
final class ForwardedConnection {

  private static final int HEAD_BYTES_MAX = 64 * 1024;
  private static final int BUFFER_BYTES = 64 * 1024;

  private final Socket client;
  private final Endpoint.Tcp service;
  private final String prefix;
  private final String key;

  /// @param prefix path of the port's route
  /// @param key the API key, which the request is given
  ForwardedConnection(Socket client, Endpoint.Tcp service, String prefix, String key) {
    this.client = client;
    this.service = service;
    this.prefix = prefix;
    this.key = key;
  }

  void carry() {
    try (client;
        Socket upstream = new Socket()) {
      InputStream in = client.getInputStream();
      String head = readHead(in);
      if (head.isEmpty()) {
        return;
      }
      try {
        upstream.connect(new InetSocketAddress(service.host(), service.port()));
      } catch (IOException e) {
        answer("502 Bad Gateway", "The SPACE service does not answer: " + e.getMessage());
        return;
      }
      OutputStream up = upstream.getOutputStream();
      up.write(rewrite(head).getBytes(StandardCharsets.ISO_8859_1));
      Thread.ofVirtual().name("forward-up").start(() -> pump(in, up));
      pump(upstream.getInputStream(), client.getOutputStream());
    } catch (IOException e) {
      // One side is gone; closing both tells the other.
    }
  }

  private void answer(String status, String text) throws IOException {
    byte[] body = (text + "\n").getBytes(StandardCharsets.UTF_8);
    String head =
        "HTTP/1.1 "
            + status
            + "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: "
            + body.length
            + "\r\nConnection: close\r\n\r\n";
    client.getOutputStream().write(head.getBytes(StandardCharsets.ISO_8859_1));
    client.getOutputStream().write(body);
  }

  private static String readHead(InputStream in) throws IOException {
    ByteArrayOutputStream head = new ByteArrayOutputStream();
    int ends = 0;
    while (ends < 2) {
      int c = in.read();
      if (c < 0 || head.size() >= HEAD_BYTES_MAX) {
        return "";
      }
      head.write(c);
      ends = c == '\n' ? ends + 1 : c == '\r' ? ends : 0;
    }
    return head.toString(StandardCharsets.ISO_8859_1);
  }

  /// The same request for the port's route. Package-private for its test.
  String rewrite(String head) {
    String[] lines = head.split("\r?\n");
    String[] first = lines[0].split(" ", 3);
    StringBuilder out = new StringBuilder(head.length() + 200);
    if (first.length != 3 || !first[1].startsWith("/")) {
      // Not for us to judge: the service answers what is malformed.
      return head;
    }
    out.append(first[0]).append(' ').append(prefix).append(first[1]).append(" HTTP/1.1\r\n");
    boolean upgrade = false;
    for (int i = 1; i < lines.length && !lines[i].isEmpty(); i++) {
      String name =
          lines[i].substring(0, Math.max(0, lines[i].indexOf(':'))).toLowerCase(Locale.ROOT);
      upgrade |= name.equals("upgrade");
      switch (name) {
        case "host", "connection", "keep-alive", "x-api-key" -> {}
        default -> out.append(lines[i]).append("\r\n");
      }
    }
    out.append("Host: ").append(service.authority()).append("\r\n");
    out.append("X-API-Key: ").append(key).append("\r\n");
    return out.append(upgrade ? "Connection: Upgrade" : "Connection: close")
        .append("\r\n\r\n")
        .toString();
  }

  private static void pump(InputStream in, OutputStream out) {
    byte[] buffer = new byte[BUFFER_BYTES];
    try {
      for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
        out.write(buffer, 0, n);
        out.flush();
      }
    } catch (IOException e) {
      // One side is gone; closing both tells the other.
    }
  }
}
