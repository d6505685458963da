package dev.space.core.session;

import dev.space.core.guest.Guest;
import java.util.concurrent.locks.ReentrantLock;

/// Where the next byte of a session's input belongs.
final class SessionInput {

  private static final long UNKNOWN = -1;

  private final String id;
  private final ReentrantLock lock = new ReentrantLock();
  private long offset = UNKNOWN;

  SessionInput(String id) {
    this.id = id;
  }

  /// Writes input at the end of all input. Its place is asked of the guest the first time.
  void append(Guest guest, byte[] data, boolean eof) {
    lock.lock();
    try {
      long at = offset == UNKNOWN ? guest.writeStdin(id, 0, new byte[0], false) : offset;
      offset = guest.writeStdin(id, at, data, eof);
    } finally {
      lock.unlock();
    }
  }

  /// Notes how far the input is after a write with a place of its own.
  void written(long nextOffset) {
    lock.lock();
    try {
      offset = Math.max(offset, nextOffset);
    } finally {
      lock.unlock();
    }
  }
}
