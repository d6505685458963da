package dev.space.http;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/// A client that sends exactly what a test says, valid or not.
public final class RawClient implements AutoCloseable {
  private static final int READ_MILLIS_MAX = 20_000;

  private final Socket socket = new Socket();

  public RawClient(InetSocketAddress address) throws IOException {
    socket.connect(address, READ_MILLIS_MAX);
    socket.setSoTimeout(READ_MILLIS_MAX);
    socket.setTcpNoDelay(true);
  }

  public RawClient send(String text) throws IOException {
    return send(text.getBytes(StandardCharsets.ISO_8859_1));
  }

  public RawClient send(byte[] bytes) throws IOException {
    socket.getOutputStream().write(bytes);
    socket.getOutputStream().flush();
    return this;
  }

  public InputStream in() throws IOException {
    return socket.getInputStream();
  }

  public Socket socket() {
    return socket;
  }

  /// Reads until the text has appeared.
  public String readUntil(String text) throws IOException {
    var read = new ByteArrayOutputStream();
    while (!read.toString(StandardCharsets.ISO_8859_1).contains(text)) {
      int b = in().read();
      if (b < 0) {
        throw new IOException("ended before '" + text + "': " + read);
      }
      read.write(b);
    }
    return read.toString(StandardCharsets.ISO_8859_1);
  }

  /// Reads until the server closes the connection.
  public String readAll() throws IOException {
    return new String(in().readAllBytes(), StandardCharsets.ISO_8859_1);
  }

  /// Reads one answer that has a Content-Length.
  public String readAnswer() throws IOException {
    String head = readUntil("\r\n\r\n");
    int length = 0;
    for (String line : head.split("\r\n")) {
      if (line.toLowerCase(java.util.Locale.ROOT).startsWith("content-length:")) {
        length = Integer.parseInt(line.substring(15).strip());
      }
    }
    return head + new String(in().readNBytes(length), StandardCharsets.UTF_8);
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }
}
