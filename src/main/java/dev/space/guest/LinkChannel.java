package dev.space.guest;

import io.grpc.ManagedChannel;
import io.grpc.okhttp.OkHttpChannelBuilder;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.channels.SocketChannel;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.net.SocketFactory;

/// One gRPC channel over one given byte stream. When the stream ends the channel is dead: it never
/// makes another, because whoever answers there may be another guest.
final class LinkChannel implements AutoCloseable {

  /// How much a call may have in flight before its reader takes it.
  private static final int FLOW_WINDOW_BYTES = 2 * 1024 * 1024;

  /// The contract's bound, and room for the frame around it.
  private static final int MESSAGE_BYTES_MAX = 1024 * 1024 + 64 * 1024;

  private static final int METADATA_BYTES_MAX = 16 * 1024;

  /// For the link's reader and for every write alike: the transport starts a task for each burst of
  /// writes, which on platform threads would be a thread of the host's each time.
  private static final Executor VIRTUAL = task -> Thread.ofVirtual().name("guest-link").start(task);

  private final LinkSocket socket;
  private final ManagedChannel channel;

  LinkChannel(SocketChannel stream) {
    socket = new LinkSocket(stream);
    // The address is never looked up or connected to; it has to look like one.
    channel =
        OkHttpChannelBuilder.forAddress("127.0.0.1", 1)
            .usePlaintext()
            .overrideAuthority("agent")
            .socketFactory(new OneSocket(socket))
            .executor(VIRTUAL)
            .offloadExecutor(VIRTUAL)
            .transportExecutor(VIRTUAL)
            .flowControlWindow(FLOW_WINDOW_BYTES)
            .maxInboundMessageSize(MESSAGE_BYTES_MAX)
            .maxInboundMetadataSize(METADATA_BYTES_MAX)
            .idleTimeout(365, TimeUnit.DAYS)
            .disableRetry()
            .disableServiceConfigLookUp()
            .proxyDetector(_ -> null)
            .build();
    socket.closed().thenRun(channel::shutdownNow);
  }

  ManagedChannel grpc() {
    return channel;
  }

  CompletableFuture<Void> closed() {
    return socket.closed();
  }

  @Override
  public void close() {
    channel.shutdownNow();
    socket.close();
  }

  /// Gives its one socket once. A transport that asks again has lost it.
  private static final class OneSocket extends SocketFactory {
    private final LinkSocket socket;
    private final AtomicBoolean given = new AtomicBoolean();

    OneSocket(LinkSocket socket) {
      this.socket = socket;
    }

    private Socket give() throws IOException {
      if (!given.compareAndSet(false, true)) {
        socket.close();
        throw new IOException("the guest link is closed");
      }
      return socket;
    }

    @Override
    public Socket createSocket() throws IOException {
      return give();
    }

    @Override
    public Socket createSocket(String host, int port) throws IOException {
      return give();
    }

    @Override
    public Socket createSocket(String host, int port, InetAddress local, int localPort)
        throws IOException {
      return give();
    }

    @Override
    public Socket createSocket(InetAddress host, int port) throws IOException {
      return give();
    }

    @Override
    public Socket createSocket(InetAddress host, int port, InetAddress local, int localPort)
        throws IOException {
      return give();
    }
  }
}
