package dev.space.node.log;

import dev.space.core.guest.OutputEvent;
import java.io.EOFException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Optional;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/// One file of a log: a header, then records. Its name is the number of its first event.
///
/// Written with `RandomAccessFile`, because an interrupt would close a `FileChannel`.
final class Segment {

  static final String SUFFIX = ".seg";

  private static final long MAGIC = 0x5350_4143_454c_4f47L; // "SPACELOG"
  static final int HEADER_BYTES = 28;
  private static final int CRC_AT = 24;
  private static final int SCAN_BYTES = 64 * 1024;

  final Path file;
  final long firstSeq;

  /// Bytes of output before this segment, counted from the start of the session.
  final long outputBefore;

  /// Bytes that can be read from the file. Guarded by the log's lock.
  long length;

  /// Number of the last event in it. Guarded by the log's lock.
  long lastSeq;

  /// Bytes of output in it. Guarded by the log's lock.
  long output;

  private @Nullable RandomAccessFile out;

  Segment(Path file, long firstSeq, long outputBefore) {
    this.file = file;
    this.firstSeq = firstSeq;
    this.outputBefore = outputBefore;
    this.lastSeq = firstSeq - 1;
  }

  static Path path(Path directory, long firstSeq) {
    return directory.resolve("%019d".formatted(firstSeq) + SUFFIX);
  }

  /// Reads the header of a file; empty when there is none that is whole.
  static Optional<Segment> open(Path file) throws IOException {
    try (var in = new RandomAccessFile(file.toFile(), "r")) {
      byte[] header = new byte[HEADER_BYTES];
      in.readFully(header);
      var fields = ByteBuffer.wrap(header);
      if (fields.getLong() != MAGIC || fields.getInt(CRC_AT) != crc(header)) {
        return Optional.empty();
      }
      var segment = new Segment(file, fields.getLong(), fields.getLong());
      segment.length = in.length();
      return Optional.of(segment);
    } catch (EOFException e) {
      return Optional.empty();
    }
  }

  /// What a scan of all records found.
  record Scanned(long lastSeq, long output, long length, Optional<OutputEvent> last) {}

  /// Reads record by record up to the end or the first that isn't whole.
  Scanned scan() throws IOException {
    long seq = firstSeq - 1;
    long bytes = 0;
    long at = HEADER_BYTES;
    OutputEvent last = null;
    try (var in = new RandomAccessFile(file.toFile(), "r")) {
      byte[] buffer = new byte[SCAN_BYTES];
      while (true) {
        int limit = fill(in, at, buffer);
        int size = RecordCodec.sizeAt(buffer, 0, limit);
        if (size > buffer.length) {
          buffer = new byte[size];
          continue;
        }
        int used = 0;
        while (size > 0 && used + size <= limit) {
          OutputEvent event = RecordCodec.read(buffer, used, size);
          if (event == null || event.seq() <= seq) {
            return new Scanned(seq, bytes, at + used, Optional.ofNullable(last));
          }
          last = event;
          seq = event.seq();
          bytes += RecordCodec.outputBytes(event);
          used += size;
          size = RecordCodec.sizeAt(buffer, used, limit);
        }
        if (used == 0) {
          return new Scanned(seq, bytes, at, Optional.ofNullable(last));
        }
        at += used;
      }
    }
  }

  private static int fill(RandomAccessFile in, long at, byte[] buffer) throws IOException {
    in.seek(at);
    int limit = 0;
    int n;
    while (limit < buffer.length && (n = in.read(buffer, limit, buffer.length - limit)) > 0) {
      limit += n;
    }
    return limit;
  }

  /// Appends bytes; the header goes first.
  void write(byte[] bytes, int count) throws IOException {
    try {
      RandomAccessFile to = out;
      if (to == null) {
        to = openToWrite();
      }
      to.write(bytes, 0, count);
      length += count;
    } catch (IOException e) {
      // What was written in part is cut off when the file is opened again.
      close();
      throw e;
    }
  }

  private RandomAccessFile openToWrite() throws IOException {
    var to = new RandomAccessFile(file.toFile(), "rw");
    out = to;
    to.setLength(length);
    to.seek(length);
    if (length == 0) {
      to.write(header());
      length = HEADER_BYTES;
    }
    return to;
  }

  void close() throws IOException {
    if (out != null) {
      out.close();
      out = null;
    }
  }

  private byte[] header() {
    var header = ByteBuffer.allocate(HEADER_BYTES);
    header.putLong(MAGIC).putLong(firstSeq).putLong(outputBefore);
    header.putInt(crc(header.array()));
    return header.array();
  }

  private static int crc(byte[] header) {
    var crc = new CRC32C();
    crc.update(header, 0, CRC_AT);
    return (int) crc.getValue();
  }
}
