package dev.space.http.jetty;

import dev.space.http.LiveStreams;
import dev.space.http.Tunnel;
import dev.space.http.TunnelHandler;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.eclipse.jetty.io.AbstractConnection;
import org.eclipse.jetty.io.Connection;
import org.eclipse.jetty.io.EndPoint;
import org.eclipse.jetty.server.HttpStream;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.util.Blocker;
import org.eclipse.jetty.util.BufferUtil;

/// A connection that was upgraded: its raw bytes as blocking streams.
final class JettyTunnel extends AbstractConnection
    implements Connection.UpgradeTo, Tunnel, LiveStreams.LiveStream {
  private static final int BUFFER_BYTES = 64 * 1024;

  private final LiveStreams streams;
  private final Consumer<RootHandler.ThrowingRunnable> runner;
  private final TunnelHandler work;
  private final AtomicBoolean begun = new AtomicBoolean();
  private ByteBuffer early = BufferUtil.EMPTY_BUFFER;

  private JettyTunnel(
      EndPoint endPoint,
      java.util.concurrent.Executor executor,
      LiveStreams streams,
      Consumer<RootHandler.ThrowingRunnable> runner,
      TunnelHandler work) {
    super(endPoint, executor);
    this.streams = streams;
    this.runner = runner;
    this.work = work;
  }

  /// Prepares the request's connection to become a tunnel once its answer is written.
  static void open(
      Request request,
      LiveStreams streams,
      Consumer<RootHandler.ThrowingRunnable> runner,
      TunnelHandler work) {
    EndPoint endPoint = request.getConnectionMetaData().getConnection().getEndPoint();
    var tunnel =
        new JettyTunnel(
            endPoint,
            request.getConnectionMetaData().getConnector().getExecutor(),
            streams,
            runner,
            work);
    request.setAttribute(HttpStream.UPGRADE_CONNECTION_ATTRIBUTE, tunnel);
    Request.addCompletionListener(
        request,
        failure -> {
          if (failure != null) {
            tunnel.begin();
          }
        });
  }

  @Override
  public void onUpgradeTo(ByteBuffer read) {
    early = BufferUtil.copy(read);
  }

  @Override
  public void onOpen() {
    super.onOpen();
    getEndPoint().setIdleTimeout(0);
    begin();
  }

  /// Also when the 101 could not be sent: the work meets a closed connection then, and lets go of
  /// what it holds.
  private void begin() {
    if (!begun.compareAndSet(false, true)) {
      return;
    }
    streams.add(this);
    runner.accept(
        () -> {
          try {
            work.run(this);
          } finally {
            streams.remove(this);
            getEndPoint().close();
          }
        });
  }

  @Override
  public void onFillable() {
    // Reads wait by themselves.
  }

  @Override
  public InputStream in() {
    return input;
  }

  @Override
  public OutputStream out() {
    return output;
  }

  @Override
  public void abort() {
    getEndPoint().close(new IOException("aborted"));
  }

  @Override
  public void tick(long nanoTime, Duration keepAlive) {
    // The protocol inside has its own signs of life.
  }

  @Override
  public void shutDown() {
    abort();
  }

  private final InputStream input =
      new InputStream() {
        private final ByteBuffer buffer = BufferUtil.allocateDirect(BUFFER_BYTES);

        @Override
        public int read() throws IOException {
          byte[] one = new byte[1];
          return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] target, int offset, int length) throws IOException {
          if (length == 0) {
            return 0;
          }
          ByteBuffer source = early.hasRemaining() ? early : filled();
          if (source == null) {
            return -1;
          }
          int count = Math.min(length, source.remaining());
          source.get(target, offset, count);
          return count;
        }

        private @org.jspecify.annotations.Nullable ByteBuffer filled() throws IOException {
          while (!buffer.hasRemaining()) {
            int count = getEndPoint().fill(buffer);
            if (count < 0) {
              return null;
            }
            if (count == 0) {
              try (Blocker.Callback readable = Blocker.callback()) {
                getEndPoint().fillInterested(readable);
                readable.block();
              }
            }
          }
          return buffer;
        }
      };

  private final OutputStream output =
      new OutputStream() {
        @Override
        public void write(int b) throws IOException {
          write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) throws IOException {
          try (Blocker.Callback written = Blocker.callback()) {
            getEndPoint().write(written, ByteBuffer.wrap(bytes, offset, length));
            written.block();
          }
        }

        @Override
        public void close() {
          getEndPoint().shutdownOutput();
        }
      };
}
