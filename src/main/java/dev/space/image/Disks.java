package dev.space.image;

import dev.space.core.error.ErrorCode;
import java.io.IOException;

/// Tells a full disk from other faults.
final class Disks {

  private Disks() {}

  /// Java has no exception of its own for a full disk; the message is the system's text for ENOSPC
  /// or EDQUOT.
  static ErrorCode codeOf(IOException e) {
    return isFull(String.valueOf(e.getMessage())) ? ErrorCode.DISK_FULL : ErrorCode.INTERNAL;
  }

  /// Whether a tool's words say that the disk is full.
  static boolean isFull(String said) {
    return said.contains("No space left on device") || said.contains("Disk quota exceeded");
  }
}
