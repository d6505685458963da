package dev.space.guest;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.concurrent.CompletableFuture;

/// A connected byte stream dressed as a `Socket`, which is the shape the gRPC transport takes.
///
/// Both directions are buffered, because the transport reads and writes in pieces of 8 KiB and each
/// would be a system call.
final class LinkSocket extends Socket {

  private static final int BUFFER_BYTES = 64 * 1024;

  // A SETTINGS frame of RFC 9113: three bytes of length, type, flags, four bytes of stream.
  private static final int FRAME_HEAD_BYTES = 9;
  private static final int SETTINGS = 4;
  private static final int SETTING_BYTES = 6;
  private static final int SETTINGS_MAX = 10;

  /// More than the rings between a guest and its host hold.
  private static final long STALE_BYTES_MAX = 16 << 20;

  private final SocketChannel channel;
  private final CompletableFuture<Void> closed = new CompletableFuture<>();
  private final InputStream in = new In();
  private final OutputStream out = new Out();

  LinkSocket(SocketChannel channel) {
    this.channel = channel;
  }

  /// Completes at the end of the stream, its failure, or `close`.
  CompletableFuture<Void> closed() {
    return closed;
  }

  @Override
  public InputStream getInputStream() {
    return in;
  }

  @Override
  public OutputStream getOutputStream() {
    return out;
  }

  @Override
  public void close() {
    try {
      channel.close();
    } catch (IOException _) {
      // The stream is given up either way.
    }
    closed.complete(null);
  }

  @Override
  public boolean isClosed() {
    return closed.isDone();
  }

  @Override
  public boolean isConnected() {
    return true;
  }

  @Override
  public void setTcpNoDelay(boolean on) {}

  @Override
  public void setSoTimeout(int millis) {}

  @Override
  public int getSoTimeout() {
    return 0;
  }

  @Override
  public SocketAddress getRemoteSocketAddress() {
    return new InetSocketAddress(InetAddress.getLoopbackAddress(), 1);
  }

  @Override
  public SocketAddress getLocalSocketAddress() {
    return new InetSocketAddress(InetAddress.getLoopbackAddress(), 1);
  }

  private IOException lost(IOException cause) {
    close();
    return cause;
  }

  private final class In extends InputStream {
    private final ByteBuffer buffer = ByteBuffer.allocateDirect(BUFFER_BYTES).limit(0);
    private boolean begun;

    @Override
    public int read() throws IOException {
      byte[] one = new byte[1];
      return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public int read(byte[] bytes, int offset, int length) throws IOException {
      if (!buffer.hasRemaining() && !fill() || !begun && !begin()) {
        return -1;
      }
      int n = Math.min(length, buffer.remaining());
      buffer.get(bytes, offset, n);
      return n;
    }

    /// Reads more behind what there is.
    ///
    /// @return false at the end of the stream
    private boolean fill() throws IOException {
      buffer.compact();
      int n;
      try {
        n = channel.read(buffer);
      } catch (IOException e) {
        buffer.limit(0);
        throw lost(e);
      }
      buffer.flip();
      if (n < 0) {
        LinkSocket.this.close();
      }
      return n >= 0;
    }

    /// Throws away what an earlier connection left in the port of a guest that was saved while it
    /// wrote: this one begins with the frame that an HTTP/2 server sends first.
    ///
    /// @return false at the end of the stream
    private boolean begin() throws IOException {
      long stale = 0;
      while (true) {
        int last = buffer.limit() - FRAME_HEAD_BYTES;
        for (int at = buffer.position(); at <= last; at++) {
          if (isSettings(at)) {
            buffer.position(at);
            begun = true;
            return true;
          }
        }
        int from = Math.max(buffer.position(), last + 1);
        stale += from - buffer.position();
        buffer.position(from);
        if (stale > STALE_BYTES_MAX) {
          throw lost(new IOException("no HTTP/2 server answers on the guest link"));
        }
        if (!fill()) {
          return false;
        }
      }
    }

    private boolean isSettings(int at) {
      int length = buffer.get(at + 2) & 0xff;
      return buffer.getShort(at) == 0
          && length % SETTING_BYTES == 0
          && length <= SETTINGS_MAX * SETTING_BYTES
          && buffer.get(at + 3) == SETTINGS
          && buffer.get(at + 4) == 0
          && buffer.getInt(at + 5) == 0;
    }

    @Override
    public int available() {
      return begun ? buffer.remaining() : 0;
    }
  }

  private final class Out extends OutputStream {
    private final ByteBuffer buffer = ByteBuffer.allocateDirect(BUFFER_BYTES);

    @Override
    public void write(int b) throws IOException {
      write(new byte[] {(byte) b}, 0, 1);
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
      int done = 0;
      while (done < length) {
        if (!buffer.hasRemaining()) {
          flush();
        }
        int n = Math.min(length - done, buffer.remaining());
        buffer.put(bytes, offset + done, n);
        done += n;
      }
    }

    @Override
    public void flush() throws IOException {
      buffer.flip();
      try {
        while (buffer.hasRemaining()) {
          if (channel.write(buffer) < 0) {
            throw new EOFException("the stream is closed");
          }
        }
      } catch (IOException e) {
        throw lost(e);
      } finally {
        buffer.clear();
      }
    }
  }
}
