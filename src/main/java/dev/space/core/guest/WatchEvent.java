package dev.space.core.guest;

import java.util.Optional;

/// A change below a watched directory.
///
/// @param name relative to the watched directory; empty for `ARMED` and `OVERFLOW`
/// @param entry the file after the change, when asked for and still there
/// @param mark of a `MARK`: the number that [Guest#markWatch] gave, or a later one
public record WatchEvent(
    Kind kind, String name, Optional<FileEntry> entry, long atMillis, long mark) {

  /// Any event but a mark.
  public WatchEvent(Kind kind, String name, Optional<FileEntry> entry, long atMillis) {
    this(kind, name, entry, atMillis, 0);
  }

  public enum Kind {
    /// The watch is set: every later change is reported.
    ARMED,
    CREATE,
    WRITE,
    REMOVE,
    /// Of the old name; the new one is a `CREATE`.
    RENAME,
    CHMOD,
    /// Events were lost: list again.
    OVERFLOW,
    /// Every change made before a call of [Guest#markWatch] was reported.
    MARK
  }
}
