package dev.space.core.guest;

import java.util.Optional;

/// A change below a watched directory.
///
/// @param name relative to the watched directory; empty for `ARMED` and `OVERFLOW`
/// @param entry the file after the change, when asked for and still there
public record WatchEvent(Kind kind, String name, Optional<FileEntry> entry, long atMillis) {

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
    OVERFLOW
  }
}
