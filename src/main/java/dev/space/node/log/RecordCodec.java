package dev.space.node.log;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.OutputEvent.Stream;
import dev.space.core.guest.ProcessExit;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/// The form of an event on disk, big-endian: payload length (4), CRC-32C of all that follows (4),
/// type (1), number (8), time in Unix milliseconds (8), payload.
final class RecordCodec {

  static final int HEADER_BYTES = 25;

  /// A message of the guest link is at most 1 MiB.
  static final int PAYLOAD_BYTES_MAX = 1024 * 1024;

  private static final int CRC_AT = 4;
  private static final int TYPE_AT = 8;
  private static final int SEQ_AT = 9;
  private static final int TIME_AT = 17;

  private static final byte STARTED = 1;
  private static final byte STDOUT = 2;
  private static final byte STDERR = 3;
  private static final byte PTY = 4;
  private static final byte GAP = 5;
  private static final byte EXITED = 6;

  private static final int STARTED_BYTES = 4;
  private static final int GAP_BYTES = 16;
  private static final int EXITED_BYTES = 9;
  private static final int CORE_DUMPED = 1;
  private static final int TIMED_OUT = 2;

  private static final VarHandle INT =
      MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);
  private static final VarHandle LONG =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);

  private RecordCodec() {}

  /// Bytes an event takes on disk.
  static int size(OutputEvent event) {
    return HEADER_BYTES + payloadSize(event);
  }

  /// Bytes of output an event stands for, missing ones counted.
  static long outputBytes(OutputEvent event) {
    return switch (event) {
      case OutputEvent.Bytes bytes -> bytes.data().length;
      case OutputEvent.Gap gap -> gap.bytes();
      case OutputEvent.Started _, OutputEvent.Exited _ -> 0;
    };
  }

  private static int payloadSize(OutputEvent event) {
    return switch (event) {
      case OutputEvent.Started _ -> STARTED_BYTES;
      case OutputEvent.Bytes bytes -> bytes.data().length;
      case OutputEvent.Gap _ -> GAP_BYTES;
      case OutputEvent.Exited _ -> EXITED_BYTES;
    };
  }

  /// Writes an event; there are `size(event)` bytes of room.
  static void write(OutputEvent event, byte[] into, int at) {
    int payload = at + HEADER_BYTES;
    int length = payloadSize(event);
    INT.set(into, at, length);
    LONG.set(into, at + SEQ_AT, event.seq());
    LONG.set(into, at + TIME_AT, event.atMillis());
    switch (event) {
      case OutputEvent.Started started -> {
        into[at + TYPE_AT] = STARTED;
        INT.set(into, payload, started.pid());
      }
      case OutputEvent.Bytes bytes -> {
        into[at + TYPE_AT] =
            switch (bytes.stream()) {
              case STDOUT -> STDOUT;
              case STDERR -> STDERR;
              case PTY -> PTY;
            };
        System.arraycopy(bytes.data(), 0, into, payload, length);
      }
      case OutputEvent.Gap gap -> {
        into[at + TYPE_AT] = GAP;
        LONG.set(into, payload, gap.firstSeq());
        LONG.set(into, payload + 8, gap.bytes());
      }
      case OutputEvent.Exited(_, _, ProcessExit exit) -> {
        into[at + TYPE_AT] = EXITED;
        INT.set(into, payload, exit.code());
        INT.set(into, payload + 4, exit.signal());
        into[payload + 8] =
            (byte) ((exit.coreDumped() ? CORE_DUMPED : 0) | (exit.timedOut() ? TIMED_OUT : 0));
      }
    }
    INT.set(into, at + CRC_AT, crc(into, at, length));
  }

  /// Bytes of the record that starts here, as far as its length can be read and is possible; else
  /// 0.
  static int sizeAt(byte[] from, int at, int limit) {
    if (limit - at < HEADER_BYTES) {
      return 0;
    }
    int length = (int) INT.get(from, at);
    return length < 0 || length > PAYLOAD_BYTES_MAX ? 0 : HEADER_BYTES + length;
  }

  static long seqAt(byte[] from, int at) {
    return (long) LONG.get(from, at + SEQ_AT);
  }

  /// Reads a whole record; null when it is damaged.
  static @Nullable OutputEvent read(byte[] from, int at, int size) {
    int payload = at + HEADER_BYTES;
    int length = size - HEADER_BYTES;
    if ((int) INT.get(from, at + CRC_AT) != crc(from, at, length)) {
      return null;
    }
    long seq = seqAt(from, at);
    long time = (long) LONG.get(from, at + TIME_AT);
    return switch (from[at + TYPE_AT]) {
      case STARTED -> new OutputEvent.Started(seq, time, (int) INT.get(from, payload));
      case STDOUT -> bytes(seq, time, Stream.STDOUT, from, payload, length);
      case STDERR -> bytes(seq, time, Stream.STDERR, from, payload, length);
      case PTY -> bytes(seq, time, Stream.PTY, from, payload, length);
      case GAP ->
          new OutputEvent.Gap(
              seq, time, (long) LONG.get(from, payload), (long) LONG.get(from, payload + 8));
      case EXITED -> {
        int flags = from[payload + 8];
        yield new OutputEvent.Exited(
            seq,
            time,
            new ProcessExit(
                (int) INT.get(from, payload),
                (int) INT.get(from, payload + 4),
                (flags & CORE_DUMPED) != 0,
                (flags & TIMED_OUT) != 0));
      }
      default -> null;
    };
  }

  private static OutputEvent bytes(
      long seq, long time, Stream stream, byte[] from, int at, int length) {
    return new OutputEvent.Bytes(seq, time, stream, Arrays.copyOfRange(from, at, at + length));
  }

  private static int crc(byte[] bytes, int at, int payloadLength) {
    var crc = new CRC32C();
    crc.update(bytes, at + TYPE_AT, HEADER_BYTES - TYPE_AT + payloadLength);
    return (int) crc.getValue();
  }

  /// Refuses what could not be read again.
  static void check(OutputEvent event) {
    if (payloadSize(event) > PAYLOAD_BYTES_MAX) {
      throw Problem.of(ErrorCode.INTERNAL, "The guest sent an output event of more than 1 MiB.")
          .toException();
    }
  }
}
