package dev.space.e2b;

import com.google.protobuf.Message;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/// Writes the messages of one Connect stream, each in its envelope and flushed, and keep-alives
/// when nothing else was written for a while.
final class EnvelopeWriter implements AutoCloseable {

  private static final int HEADER_BYTES = 5;
  private static final byte MESSAGE = 0;
  private static final byte END_OF_STREAM = 2;

  private final OutputStream out;
  private final Codec codec;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition ended = lock.newCondition();
  private long lastWriteNanos = System.nanoTime();
  private boolean open = true;

  EnvelopeWriter(OutputStream out, Codec codec) {
    this.out = out;
    this.codec = codec;
  }

  void message(Message message) {
    byte[] body = codec.encode(message);
    lock.lock();
    try {
      if (open) {
        write(MESSAGE, body);
      }
    } finally {
      lock.unlock();
    }
  }

  /// The last envelope: `{}` or an error. It is JSON whatever the codec.
  void end(byte[] json) {
    lock.lock();
    try {
      if (open) {
        write(END_OF_STREAM, json);
        close();
      }
    } finally {
      lock.unlock();
    }
  }

  /// Sends this message whenever nothing was written for the given time, until the stream ends.
  void keepAlive(Duration idle, Message keepAlive) {
    Thread.ofVirtual()
        .name("e2b-keepalive")
        .start(
            () -> {
              try {
                keepAliveLoop(idle.toNanos(), keepAlive);
              } catch (InterruptedException | UncheckedIOException _) {
                // The stream is gone; whoever writes next finds out.
              }
            });
  }

  private void keepAliveLoop(long idleNanos, Message keepAlive) throws InterruptedException {
    lock.lock();
    try {
      while (open) {
        long left = lastWriteNanos + idleNanos - System.nanoTime();
        if (left > 0) {
          boolean _ = ended.await(left, TimeUnit.NANOSECONDS);
        } else {
          write(MESSAGE, codec.encode(keepAlive));
        }
      }
    } finally {
      lock.unlock();
    }
  }

  private void write(byte flags, byte[] body) {
    ByteBuffer envelope = ByteBuffer.allocate(HEADER_BYTES + body.length);
    envelope.put(flags).putInt(body.length).put(body);
    try {
      out.write(envelope.array());
      out.flush();
    } catch (IOException e) {
      open = false;
      throw new UncheckedIOException(e);
    }
    lastWriteNanos = System.nanoTime();
  }

  /// Ends keep-alives; writes nothing.
  @Override
  public void close() {
    lock.lock();
    try {
      open = false;
      ended.signalAll();
    } finally {
      lock.unlock();
    }
  }
}
