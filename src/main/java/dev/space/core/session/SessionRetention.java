package dev.space.core.session;

import dev.space.core.error.SpaceException;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Forgets ended sessions with their logs, so that a sandbox that runs commands for ever fills no
/// disk. What is open, or held by a reader, is never touched.
final class SessionRetention {

  /// Ended sessions of a sandbox without `keep`.
  static final int ENDED_MAX = 1000;

  /// Ended sessions of a sandbox with `keep`.
  static final int KEPT_MAX = 4096;

  /// How long an ended session without `keep` is there.
  static final Duration ENDED_AGE_MAX = Duration.ofHours(24);

  private static final Logger LOG = LoggerFactory.getLogger(SessionRetention.class);

  /// How many creates of a sandbox may pass between two looks at how many there are.
  private static final int LOOK_EVERY = 64;

  private static final Duration SWEEP_EVERY = Duration.ofMinutes(10);
  private static final int BATCH = 500;

  private final SessionRecords records;
  private final OutputLogs logs;
  private final LiveSessions live;
  private final InstantSource clock;
  private final ConcurrentHashMap<String, Integer> created = new ConcurrentHashMap<>();
  private final AtomicReference<Instant> swept;

  SessionRetention(
      SessionRecords records, OutputLogs logs, LiveSessions live, InstantSource clock) {
    this.records = records;
    this.logs = logs;
    this.live = live;
    this.clock = clock;
    this.swept = new AtomicReference<>(clock.instant());
  }

  /// To be called after a session was made.
  void created(String sandboxId) {
    if (created.merge(sandboxId, 1, Integer::sum) >= LOOK_EVERY) {
      created.remove(sandboxId);
      quietly(
          () -> {
            forget(records.endedBeyond(sandboxId, false, ENDED_MAX, BATCH));
            forget(records.endedBeyond(sandboxId, true, KEPT_MAX, BATCH));
          });
    }
    Instant last = swept.get();
    Instant now = clock.instant();
    if (last.plus(SWEEP_EVERY).isBefore(now) && swept.compareAndSet(last, now)) {
      Thread.ofVirtual().name("session-retention").start(this::sweep);
    }
  }

  void sandboxDeleted(String sandboxId) {
    created.remove(sandboxId);
  }

  /// Forgets what is too old.
  void sweep() {
    quietly(
        () -> {
          Instant before = clock.instant().minus(ENDED_AGE_MAX);
          List<Session> old = records.endedBefore(before, BATCH);
          while (forget(old) && old.size() == BATCH) {
            old = records.endedBefore(before, BATCH);
          }
        });
  }

  private boolean forget(List<Session> sessions) {
    boolean any = false;
    for (Session session : sessions) {
      if (live.find(session.id()).isEmpty() && records.delete(session.id())) {
        logs.delete(session.sandboxId(), session.id());
        any = true;
      }
    }
    return any;
  }

  private static void quietly(Runnable work) {
    try {
      work.run();
    } catch (SpaceException e) {
      LOG.warn("ended sessions could not be forgotten: {}", e.problem().oneLine());
    }
  }
}
