package dev.space.core.guest;

/// One event of a process, numbered from 1 without holes.
public sealed interface OutputEvent {

  long seq();

  /// Unix time in milliseconds by the guest's clock.
  long atMillis();

  record Started(long seq, long atMillis, int pid) implements OutputEvent {}

  record Bytes(long seq, long atMillis, Stream stream, byte[] data) implements OutputEvent {}

  /// Events `firstSeq` to `seq` are gone; they held `bytes` bytes.
  record Gap(long seq, long atMillis, long firstSeq, long bytes) implements OutputEvent {}

  record Exited(long seq, long atMillis, ProcessExit exit) implements OutputEvent {}

  /// Where bytes came from.
  enum Stream {
    STDOUT,
    STDERR,
    PTY
  }
}
