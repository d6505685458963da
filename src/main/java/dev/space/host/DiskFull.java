package dev.space.host;

import dev.space.core.error.ErrorCode;
import java.io.IOException;

/// Tells a full disk from other faults. Neither Java nor the tools have anything of their own for
/// it: the system's text for ENOSPC or EDQUOT is what can be looked for.
public final class DiskFull {

  private DiskFull() {}

  /// DISK_FULL or INTERNAL.
  public static ErrorCode codeOf(IOException e) {
    return isSaidBy(e) ? ErrorCode.DISK_FULL : ErrorCode.INTERNAL;
  }

  /// Whether this is why it failed.
  public static boolean isSaidBy(IOException e) {
    return isSaidIn(String.valueOf(e.getMessage()));
  }

  /// Whether a tool's words say so.
  public static boolean isSaidIn(String words) {
    return words.contains("No space left on device") || words.contains("Disk quota exceeded");
  }
}
