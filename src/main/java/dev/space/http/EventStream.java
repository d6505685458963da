package dev.space.http;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/// Server-sent events to one client.
///
/// [#append] collects, [#flush] writes what was collected in one piece, [#send] does both: a burst
/// costs one write when its producer flushes at its end. Writes block on a slow client.
///
/// An idle stream gets a comment every keep-alive interval. When that or any write fails the client
/// is gone: the handler's thread is interrupted, and every later call throws `cancelled`. The same
/// interrupt ends a handler when the server stops, after the client got an `error` event with the
/// code `shutting_down`.
public final class EventStream implements AutoCloseable, LiveStreams.LiveStream {
  /// Collected bytes that are written without waiting for a flush.
  private static final int BATCH_BYTES_MAX = 64 * 1024;

  private static final int BATCH_BYTES_FIRST = 512;

  /// How long telling a client of the stop may wait for a write that is stuck.
  private static final Duration TELL_MAX = Duration.ofSeconds(1);

  private static final byte[] KEEP_ALIVE = ascii(": keep-alive\n\n");
  private static final byte[] ID = ascii("id: ");
  private static final byte[] EVENT = ascii("event: ");
  private static final byte[] DATA = ascii("data: ");

  private final OutputStream out;
  private final LiveStreams streams;
  private final String requestId;
  private final Thread handler = Thread.currentThread();
  private final ReentrantLock lock = new ReentrantLock();

  private byte[] batch = new byte[BATCH_BYTES_FIRST];
  private int used;
  private boolean closed;
  private boolean interrupted;
  private volatile boolean gone;
  private volatile boolean stopped;
  private volatile long lastWrite = System.nanoTime();

  /// @param out writes through to the client at every call
  public EventStream(OutputStream out, LiveStreams streams, String requestId) {
    this.out = out;
    this.streams = streams;
    this.requestId = requestId;
    streams.add(this);
  }

  /// Collects an event and writes it out with all that was collected before.
  public void send(String id, String type, String data) {
    append(id, type, data.getBytes(StandardCharsets.UTF_8));
    flush();
  }

  /// Collects an event.
  ///
  /// @param id what a client gives as `Last-Event-ID`; empty for none
  /// @param type the event's name; empty for none
  /// @param data UTF-8 of any lines; a carriage return can't be carried and is refused
  public void append(String id, String type, byte[] data) {
    lock.lock();
    try {
      checkOpen();
      if (!id.isEmpty()) {
        line(ID, oneLine(id));
      }
      if (!type.isEmpty()) {
        line(EVENT, oneLine(type));
      }
      int start = 0;
      for (int i = 0; i <= data.length; i++) {
        if (i == data.length || data[i] == '\n') {
          put(DATA, 0, DATA.length);
          put(data, start, i - start);
          put('\n');
          start = i + 1;
        } else if (data[i] == '\r') {
          throw Problem.of(ErrorCode.INTERNAL, "An event's data holds a carriage return")
              .toException();
        }
      }
      put('\n');
      if (used >= BATCH_BYTES_MAX) {
        write();
      }
    } finally {
      lock.unlock();
    }
  }

  /// Writes out what was collected.
  ///
  /// @throws SpaceException CANCELLED when the client is gone
  public void flush() {
    lock.lock();
    try {
      checkOpen();
      write();
    } finally {
      lock.unlock();
    }
  }

  /// Sends an `error` event that carries the problem as JSON. It has no id, so a client that comes
  /// back continues where it was.
  public void error(Problem problem) {
    append("", "error", Json.bytes(ProblemJson.of(problem, requestId)));
    flush();
  }

  /// Whether the client went away.
  public boolean isGone() {
    return gone;
  }

  /// Whether the server stopped this stream.
  public boolean isStopped() {
    return stopped;
  }

  /// Writes out what was collected and ends the stream. Closing twice is no error.
  @Override
  public void close() {
    streams.remove(this);
    lock.lock();
    try {
      if (!closed && !gone && !stopped) {
        write();
      }
    } catch (SpaceException e) {
      gone = true;
    } finally {
      closed = true;
      if (interrupted && Thread.currentThread() == handler) {
        Thread.interrupted();
      }
      lock.unlock();
    }
  }

  @Override
  public void tick(long nanoTime, Duration keepAlive) {
    if (nanoTime - lastWrite >= keepAlive.toNanos() && !lock.isLocked()) {
      Thread.startVirtualThread(this::keepAlive);
    }
  }

  @Override
  public void shutDown() {
    boolean locked = false;
    try {
      locked = lock.tryLock(TELL_MAX.toMillis(), TimeUnit.MILLISECONDS);
      if (locked && !closed && !gone && !stopped) {
        error(
            Problem.of(ErrorCode.SHUTTING_DOWN, "The server is stopping")
                .remedy("Connect again with the last id you saw."));
      }
    } catch (SpaceException e) {
      gone = true;
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
    } finally {
      stopped = true;
      if (locked) {
        interruptHandler();
        lock.unlock();
      } else {
        handler.interrupt();
      }
    }
  }

  private void keepAlive() {
    if (!lock.tryLock()) {
      return;
    }
    try {
      if (!closed && !gone && !stopped) {
        put(KEEP_ALIVE, 0, KEEP_ALIVE.length);
        write();
      }
    } catch (SpaceException e) {
      interruptHandler();
    } finally {
      lock.unlock();
    }
  }

  /// Under the lock: once closed, the handler's thread may already work for somebody else.
  private void interruptHandler() {
    if (!closed) {
      interrupted = true;
      handler.interrupt();
    }
  }

  private void checkOpen() {
    if (gone || stopped || closed) {
      throw cancelled();
    }
  }

  private void write() {
    if (used == 0) {
      return;
    }
    try {
      out.write(batch, 0, used);
      lastWrite = System.nanoTime();
    } catch (IOException e) {
      gone = true;
      throw cancelled(e);
    } finally {
      used = 0;
      if (batch.length > BATCH_BYTES_MAX) {
        batch = new byte[BATCH_BYTES_FIRST];
      }
    }
  }

  private SpaceException cancelled() {
    return Problem.of(
            ErrorCode.CANCELLED, gone ? "The client went away" : "The stream of events is closed")
        .toException();
  }

  private SpaceException cancelled(IOException cause) {
    return Problem.of(ErrorCode.CANCELLED, "The client went away").toException(cause);
  }

  private void line(byte[] field, byte[] value) {
    put(field, 0, field.length);
    put(value, 0, value.length);
    put('\n');
  }

  private void put(char c) {
    room(1);
    batch[used++] = (byte) c;
  }

  private void put(byte[] bytes, int from, int count) {
    room(count);
    System.arraycopy(bytes, from, batch, used, count);
    used += count;
  }

  private void room(int count) {
    if (used + count > batch.length) {
      batch = Arrays.copyOf(batch, Math.max(used + count, batch.length * 2));
    }
  }

  private static byte[] oneLine(String value) {
    if (value.indexOf('\n') >= 0 || value.indexOf('\r') >= 0 || value.indexOf('\0') >= 0) {
      throw Problem.of(ErrorCode.INTERNAL, "An event's id or type holds a line end").toException();
    }
    return value.getBytes(StandardCharsets.UTF_8);
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }
}
