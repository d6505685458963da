package dev.space.guest;

import com.google.protobuf.ByteString;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// The bytes of a streaming answer. Closing it cancels the call.
final class MessageInput<P> extends InputStream {

  private final Exchange<?, P> call;
  private final Function<P, ByteString> bytesOf;
  private final Predicate<P> last;
  private ByteBuffer current = ByteBuffer.allocate(0);
  private boolean over;

  MessageInput(Exchange<?, P> call, Function<P, ByteString> bytesOf) {
    this(call, bytesOf, _ -> false);
  }

  /// @param last tells the message after whose bytes the stream ends though the call goes on
  MessageInput(Exchange<?, P> call, Function<P, ByteString> bytesOf, Predicate<P> last) {
    this.call = call;
    this.bytesOf = bytesOf;
    this.last = last;
  }

  @Override
  public int read() {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
  }

  @Override
  public int read(byte[] bytes, int offset, int length) {
    if (length == 0) {
      return 0;
    }
    while (!current.hasRemaining()) {
      @Nullable P message = over ? null : call.next();
      if (message == null) {
        over = true;
        return -1;
      }
      current = bytesOf.apply(message).asReadOnlyByteBuffer();
      over = last.test(message);
    }
    int n = Math.min(length, current.remaining());
    current.get(bytes, offset, n);
    return n;
  }

  @Override
  public int available() {
    return current.remaining();
  }

  @Override
  public void close() {
    call.close();
  }
}
