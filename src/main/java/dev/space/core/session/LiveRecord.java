package dev.space.core.session;

import dev.space.core.error.SpaceException;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The record of a session in use, in memory and on disk. Who changes it holds the session's lock.
final class LiveRecord {

  private static final Logger LOG = LoggerFactory.getLogger(LiveRecord.class);

  private final SessionRecords records;
  private final ReentrantLock lock;
  private volatile Session now;
  private @Nullable Session unsaved;

  LiveRecord(Session now, SessionRecords records, ReentrantLock lock) {
    this.now = now;
    this.lock = lock;
    this.records = records;
  }

  Session now() {
    return now;
  }

  /// Changes what memory says; [#save] is to follow.
  void inMemory(Session changed) {
    now = changed;
  }

  /// Changes what memory says, and what the disk says soon after, before any later change.
  void later(Session changed) {
    now = changed;
    unsaved = changed;
    Thread.ofVirtual().name("session-record-" + changed.id()).start(this::catchUp);
  }

  /// Takes what memory says to the disk.
  void save() {
    saveLate();
    update(now);
  }

  /// Does what was left for later.
  void catchUp() {
    lock.lock();
    try {
      saveLate();
    } catch (SpaceException e) {
      // The next change tries again.
      LOG.warn("session {}: {}", now.id(), e.problem().oneLine());
    } finally {
      lock.unlock();
    }
  }

  private void saveLate() {
    Session late = unsaved;
    if (late != null) {
      update(late);
      unsaved = null;
    }
  }

  private void update(Session changed) {
    if (!records.update(changed)) {
      // The sandbox was deleted with its records meanwhile, or the process was found again under a
      // record that an older daemon wrote. Memory is right in both cases.
      LOG.debug("session {}: no record of rev {} to change", changed.id(), changed.rev() - 1);
    }
  }
}
