package dev.space.node.log;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.OutputEvent;
import dev.space.core.session.OutputLog;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.FileChannel;
import java.nio.file.NoSuchFileException;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Reads one log: from the cache while it keeps up, else from the files, a burst at a time.
final class LogReader implements OutputLog.Reader {

  private static final int BUFFER_BYTES = 2 * SegmentedLog.BURST_BYTES;

  private final SegmentedLog log;

  /// Number of the last event that was given out; the log keeps everything after it.
  private volatile long position;

  private @Nullable FileChannel file;
  private @Nullable Segment segment;
  private long at;

  LogReader(SegmentedLog log, long position) {
    this.log = log;
    this.position = position;
  }

  long position() {
    return position;
  }

  @Override
  public List<OutputEvent> next(Duration wait) throws InterruptedException {
    List<OutputEvent> events =
        switch (log.find(position, wait)) {
          case SegmentedLog.Found.Nothing _ -> List.of();
          case SegmentedLog.Found.Events found -> {
            closeFile();
            yield found.events();
          }
          case SegmentedLog.Found.InFile(Segment where, long length) -> read(where, length);
        };
    if (!events.isEmpty()) {
      position = events.getLast().seq();
      log.moved();
    }
    return events;
  }

  private List<OutputEvent> read(Segment where, long length) throws InterruptedException {
    try {
      FileChannel from = file;
      if (from == null || segment != where) {
        closeFile();
        from = FileChannel.open(where.file, StandardOpenOption.READ);
        file = from;
        segment = where;
        at = Segment.HEADER_BYTES;
      }
      return burst(from, length);
    } catch (ClosedByInterruptException e) {
      throw new InterruptedException("reading a session's log");
    } catch (NoSuchFileException e) {
      throw Problem.of(ErrorCode.SESSION_NOT_FOUND, "The session's output was deleted.")
          .toException(e);
    } catch (IOException e) {
      throw SegmentedLog.failed("read", e);
    }
  }

  private List<OutputEvent> burst(FileChannel from, long length) throws IOException {
    var events = new ArrayList<OutputEvent>();
    byte[] buffer = new byte[(int) Math.min(BUFFER_BYTES, length - at)];
    while (events.isEmpty()) {
      int limit = fill(from, buffer, length);
      int used = 0;
      int taken = 0;
      int size = RecordCodec.sizeAt(buffer, 0, limit);
      while (size > 0 && used + size <= limit && taken < SegmentedLog.BURST_BYTES) {
        if (RecordCodec.seqAt(buffer, used) > position) {
          OutputEvent event = RecordCodec.read(buffer, used, size);
          if (event == null) {
            throw new IOException("a damaged record in " + segment);
          }
          events.add(event);
          taken += size;
        }
        used += size;
        size = RecordCodec.sizeAt(buffer, used, limit);
      }
      at += used;
      if (used == 0) {
        if (size <= buffer.length) {
          throw new IOException("a record without its end");
        }
        buffer = new byte[size];
      }
    }
    return events;
  }

  private int fill(FileChannel from, byte[] buffer, long length) throws IOException {
    var into = ByteBuffer.wrap(buffer, 0, (int) Math.min(buffer.length, length - at));
    while (into.hasRemaining() && from.read(into, at + into.position()) > 0) {
      continue;
    }
    return into.position();
  }

  @Override
  public boolean finished() {
    return log.finished(position);
  }

  @Override
  public void close() {
    log.left(this);
    closeFile();
  }

  private void closeFile() {
    if (file != null) {
      try {
        file.close();
      } catch (IOException e) {
        throw SegmentedLog.failed("read", e);
      } finally {
        file = null;
        segment = null;
      }
    }
  }
}
