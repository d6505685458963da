package dev.space.node.log;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;

/// How much of one session's output is kept, in bytes of its files.
///
/// @param headBytes the first part, which never goes
/// @param tailBytes the last part
/// @param segmentBytes the step in which the middle goes
public record LogBounds(long headBytes, long tailBytes, long segmentBytes) {

  private static final long KIB = 1024;
  private static final long MIB = 1024 * KIB;

  /// Smaller bounds would hold less than one chunk of the guest link.
  private static final long PART_BYTES_MIN = 64 * KIB;

  private static final int SEGMENTS_OF_TAIL = 15;

  /// 16 MiB: the first and the last 15.
  public static final LogBounds DEFAULT = new LogBounds(MIB, 15 * MIB, MIB);

  public LogBounds {
    if (headBytes < PART_BYTES_MIN || tailBytes < PART_BYTES_MIN || segmentBytes > tailBytes) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "A session's log is to keep too little.")
          .remedy("Keep at least " + 2 * PART_BYTES_MIN + " bytes of each session.")
          .toException();
    }
  }

  /// Bounds that keep this many bytes in all, a sixteenth of it from the start.
  public static LogBounds of(long bytes) {
    long head = Math.max(PART_BYTES_MIN, bytes / (SEGMENTS_OF_TAIL + 1));
    long tail = bytes - head;
    return new LogBounds(head, tail, Math.max(1, tail / SEGMENTS_OF_TAIL));
  }
}
