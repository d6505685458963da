package dev.space.guest;

import com.google.protobuf.ByteString;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.Guest;
import dev.space.guest.proto.Chunk;
import dev.space.guest.proto.TunnelRequest;
import dev.space.guest.proto.TunnelTarget;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/// A connection to a port in the guest as one two-way call. Either direction ends on its own.
final class GrpcTunnel implements Guest.Tunnel {

  private static final int CHUNK_BYTES = 64 * 1024;

  private final Exchange<TunnelRequest, Chunk> call;
  private final InputStream in;
  private final OutputStream out = new Out();

  /// Waits until the guest's server accepted: the guest then sends one empty chunk.
  GrpcTunnel(Exchange<TunnelRequest, Chunk> call, int port) {
    this.call = call;
    call.send(
        TunnelRequest.newBuilder().setTarget(TunnelTarget.newBuilder().setPort(port)).build());
    Chunk first = call.next();
    if (first == null) {
      throw Problem.of(ErrorCode.PORT_CLOSED, "Port " + port + " closed at once.").toException();
    }
    if (!first.getData().isEmpty()) {
      call.close();
      throw GuestErrors.broken("the tunnel does not begin with an empty chunk").toException();
    }
    in = new MessageInput<>(call, Chunk::getData, Chunk::getEof);
  }

  @Override
  public InputStream in() {
    return in;
  }

  @Override
  public OutputStream out() {
    return out;
  }

  @Override
  public void close() {
    call.close();
  }

  private final class Out extends OutputStream {
    private boolean closed;

    @Override
    public void write(int b) throws IOException {
      write(new byte[] {(byte) b}, 0, 1);
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
      if (closed) {
        throw new IOException("the tunnel's output is closed");
      }
      int done = 0;
      while (done < length) {
        int n = Math.min(CHUNK_BYTES, length - done);
        ByteString data = ByteString.copyFrom(bytes, offset + done, n);
        if (!call.send(TunnelRequest.newBuilder().setData(data).build())) {
          throw new IOException("the server in the guest closed the connection");
        }
        done += n;
      }
    }

    @Override
    public void close() {
      if (!closed) {
        closed = true;
        if (call.send(TunnelRequest.newBuilder().setEof(true).build())) {
          call.halfClose();
        }
      }
    }
  }
}
