package dev.space.vmm.simulated;

import dev.space.core.guest.Guest;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.function.BooleanSupplier;

/// A connection to a simulated server: it echoes, or answers each HTTP request with the same text.
final class SimulatedTunnel implements Guest.Tunnel {

  private static final int BUFFER_BYTES_MAX = 64 * 1024;
  private static final int HEAD_BYTES_MAX = 64 * 1024;

  private final Optional<String> answer;
  private final ByteQueue back = new ByteQueue(2 * BUFFER_BYTES_MAX);
  private final ByteArrayOutputStream head = new ByteArrayOutputStream();
  private boolean ended;
  private boolean closed;

  SimulatedTunnel(Optional<String> answer) {
    this.answer = answer;
  }

  @Override
  public InputStream in() {
    return new InputStream() {
      @Override
      public int read() throws IOException {
        byte[] one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
      }

      @Override
      public int read(byte[] into, int from, int count) throws IOException {
        return take(into, from, count);
      }
    };
  }

  @Override
  public OutputStream out() {
    return new OutputStream() {
      @Override
      public void write(int b) throws IOException {
        give(new byte[] {(byte) b});
      }

      @Override
      public void write(byte[] data, int from, int count) throws IOException {
        for (int at = from; at < from + count; at += BUFFER_BYTES_MAX) {
          give(
              java.util.Arrays.copyOfRange(
                  data, at, Math.min(from + count, at + BUFFER_BYTES_MAX)));
        }
      }

      @Override
      public void close() {
        end();
      }
    };
  }

  private synchronized int take(byte[] into, int from, int count) throws IOException {
    if (count == 0) {
      return 0;
    }
    await(() -> back.size() > 0 || ended || closed);
    if (closed) {
      throw new IOException("The tunnel is closed");
    }
    byte[] data = back.take(count);
    System.arraycopy(data, 0, into, from, data.length);
    notifyAll();
    return data.length == 0 ? -1 : data.length;
  }

  private synchronized void give(byte[] data) throws IOException {
    await(() -> back.size() + data.length <= BUFFER_BYTES_MAX || back.size() == 0 || closed);
    if (closed || ended) {
      throw new IOException("The tunnel is closed");
    }
    if (answer.isEmpty()) {
      back.put(data);
    } else {
      head.write(data, 0, data.length);
      if (head.size() > HEAD_BYTES_MAX) {
        throw new IOException("The request's head is too long");
      }
      if (head.toString(StandardCharsets.ISO_8859_1).contains("\r\n\r\n")) {
        byte[] body = answer.get().getBytes(StandardCharsets.UTF_8);
        String response =
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: "
                + body.length
                + "\r\nConnection: close\r\n\r\n";
        back.put(response.getBytes(StandardCharsets.ISO_8859_1));
        back.put(body);
        ended = true;
      }
    }
    notifyAll();
  }

  private synchronized void await(BooleanSupplier ready) throws InterruptedIOException {
    try {
      while (!ready.getAsBoolean()) {
        wait();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("Interrupted");
    }
  }

  private synchronized void end() {
    ended = true;
    notifyAll();
  }

  @Override
  public synchronized void close() {
    closed = true;
    notifyAll();
  }
}
