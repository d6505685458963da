package dev.space.core.session;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessExit;
import dev.space.core.sandbox.SandboxService;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Optional;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// A session in use: its record as it stands now, its open log, and the pump that moves output from
/// the guest into the log. The pump is the only one that appends.
///
/// The process id in the guest is the session's id, so that starting it twice, for whatever reason,
/// starts one process.
final class LiveSession {

  private static final Logger LOG = LoggerFactory.getLogger(LiveSession.class);
  private static final Duration RETRY_FIRST = Duration.ofMillis(20);
  private static final Duration RETRY_MAX = Duration.ofSeconds(1);

  /// How long a guest may take to start a process.
  private static final int TRIES = 3;

  private static final Duration START_MAX = Duration.ofSeconds(30);

  private final SessionHost host;
  private final InstantSource clock;
  private final OutputLog log;
  private final Runnable idle;

  /// Guards changes of the record; never held while the guest is asked for anything.
  private final ReentrantLock lock = new ReentrantLock();

  private final Condition wanted = lock.newCondition();

  /// One start at a time.
  private final ReentrantLock starting = new ReentrantLock();

  private final SessionInput input;
  private final LiveRecord record;
  private @Nullable Thread pump;

  /// The start under way.
  private volatile @Nullable ProcessStart start;

  private boolean pumpAgain;

  /// Whether the log says already that the disk is full. The pump's own.
  private boolean fullTold;

  /// @param idle called when the pump has ended
  LiveSession(
      Session session,
      OutputLog log,
      SessionHost host,
      SessionRecords records,
      InstantSource clock,
      Runnable idle) {
    this.record = new LiveRecord(session, records, lock);
    this.input = new SessionInput(session.id());
    this.log = log;
    this.host = host;
    this.clock = clock;
    this.idle = idle;
    if (session.state().isTerminal()) {
      log.end();
    }
  }

  Session session() {
    return record.now();
  }

  SessionInput input() {
    return input;
  }

  OutputLog log() {
    return log;
  }

  boolean pumping() {
    lock.lock();
    try {
      return pump != null;
    } finally {
      lock.unlock();
    }
  }

  /// Starts the process if it hasn't been.
  ///
  /// @throws SpaceException the session's own error when it failed or was lost, or why it can't be
  ///   started now
  void start(Caller caller) {
    if (session().state() == SessionState.CREATED) {
      starting.lock();
      try {
        for (int tries = 1; session().state() == SessionState.CREATED; tries++) {
          if (startProcess(caller, tries == TRIES)) {
            break;
          }
        }
      } finally {
        starting.unlock();
      }
    }
    if (session().state() == SessionState.FAILED) {
      throw error().toException();
    }
  }

  /// @return false when the sandbox was put away meanwhile: whether it may be woken again for this
  ///   is decided anew, and the guest starts nothing twice
  private boolean startProcess(Caller caller, boolean last) {
    try (var use = host.use(caller, session().sandboxId())) {
      ProcessStart mine = underWay(use.guest());
      try {
        if (!mine.awaitBegin(START_MAX)) {
          mine.cancel();
          throw Problem.of(ErrorCode.DEADLINE_EXCEEDED, "The guest did not start the command.")
              .because("no answer within " + START_MAX.toSeconds() + " s")
              .remedy("Try again: a command that did start is not started twice.")
              .toException();
        }
      } catch (SpaceException e) {
        if (ProcessStart.never(e.code())) {
          end(SessionState.FAILED, Optional.empty(), Optional.of(e.problem()));
        }
        if (last || !ProcessStart.again(e.code())) {
          throw e;
        }
        return false;
      }
      return true;
    }
  }

  /// The start under way, which a caller that went away may have left.
  private ProcessStart underWay(Guest guest) {
    lock.lock();
    try {
      ProcessStart now = start;
      if (now == null) {
        now = new ProcessStart(guest, session().spec(), session().shell());
        start = now;
        pumpLocked();
      }
      return now;
    } finally {
      lock.unlock();
    }
  }

  /// The process runs. Its record is written aside: the first output doesn't wait for a disk. A
  /// crash in between leaves a session that is "created" and whose start finds its process.
  private void running(ProcessStart.Begun begun) {
    lock.lock();
    try {
      if (session().state() != SessionState.CREATED) {
        throw Problem.of(ErrorCode.CANCELLED, "The session was ended before it began.")
            .toException();
      }
      record.later(
          SessionChange.of(session())
              .state(SessionState.RUNNING)
              .pid(begun.pid())
              .startedAt(begun.at())
              .build());
      start = null;
    } finally {
      lock.unlock();
    }
  }

  /// Makes sure that output of a running process flows.
  void pump() {
    lock.lock();
    try {
      if (session().state() == SessionState.RUNNING) {
        pumpLocked();
      }
    } finally {
      lock.unlock();
    }
  }

  private void pumpLocked() {
    if (pump != null) {
      pumpAgain = true;
      wanted.signal();
      return;
    }
    pump = Thread.ofVirtual().name("session-" + session().id()).start(this::runPump);
  }

  private void runPump() {
    boolean again = true;
    try {
      while (again) {
        move();
        again = again();
      }
    } finally {
      letGo(again);
      idle.run();
    }
  }

  /// @param stillMine whether this pump is the one that others see
  private void letGo(boolean stillMine) {
    ProcessStart failed;
    lock.lock();
    try {
      if (stillMine) {
        pump = null;
      }
      failed = pump == null ? start : null;
      if (failed != null) {
        start = null;
      }
    } finally {
      lock.unlock();
    }
    if (failed != null) {
      failed.fail();
    }
  }

  /// Decides in one step with the pump's end, so that a request to pump is never lost.
  private boolean again() {
    lock.lock();
    try {
      boolean again = pumpAgain && session().state() == SessionState.RUNNING;
      pumpAgain = false;
      if (!again) {
        pump = null;
      }
      return again;
    } finally {
      lock.unlock();
    }
  }

  /// Moves output until the process ended or its sandbox doesn't run. While a session runs its
  /// sandbox is in use.
  private void move() {
    Duration retry = RETRY_FIRST;
    var caller = new Caller(session().project(), "session", session().id());
    Optional<ProcessStart> first = Optional.ofNullable(start);
    SandboxService.@Nullable Use use = null;
    try {
      while (session().state() == SessionState.RUNNING || first.isPresent()) {
        long before = log.lastSeq();
        try {
          Guest guest = first.isPresent() ? first.get().guest() : host.guest(session().sandboxId());
          if (use == null) {
            use = host.use(caller, session().sandboxId());
          }
          if (first.isPresent()) {
            first.get().run(before, this::running, this::take);
          } else if (log.exit().isEmpty()) {
            guest.output(session().id(), before, this::take);
          }
          // The exit may have reached the log and not the disk.
          log.exit()
              .ifPresent(exit -> end(SessionState.EXITED, Optional.of(exit), Optional.empty()));
          if (session().state() == SessionState.RUNNING) {
            throw Problem.of(ErrorCode.INTERNAL, "The guest ended the output before the exit.")
                .toException();
          }
          release(guest);
          return;
        } catch (SpaceException e) {
          if (first.filter(start -> start.failed(e)).isPresent() || !retryable(e)) {
            return;
          }
        }
        first = Optional.empty();
        retry = log.lastSeq() > before ? RETRY_FIRST : longer(retry);
        await(retry);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      if (use != null) {
        use.close();
      }
      flushed();
    }
  }

  private void flushed() {
    try {
      log.flush();
    } catch (SpaceException e) {
      LOG.warn("session {}: {}", session().id(), e.problem().oneLine());
    }
  }

  /// Whether to read on from the same sandbox in a moment. If not, the session was ended, or waits
  /// for the sandbox to run again.
  private boolean retryable(SpaceException e) {
    return switch (e.code()) {
      case GUEST_UNREACHABLE, INTERNAL, DEADLINE_EXCEEDED, TOO_MANY_REQUESTS -> {
        LOG.debug("session {}: output interrupted: {}", session().id(), e.problem().oneLine());
        yield true;
      }
      case DISK_FULL -> {
        // Nothing is lost: the guest keeps what isn't in the log, and its process waits for it.
        if (!fullTold) {
          fullTold = true;
          LOG.warn("session {}: {}", session().id(), e.problem().oneLine());
        }
        yield true;
      }
      case NOT_FOUND, SESSION_NOT_FOUND, FILE_NOT_FOUND -> {
        lost(
            Problem.of(ErrorCode.SANDBOX_DIED, "The guest doesn't know the session's process.")
                .because(e.problem().oneLine()));
        yield false;
      }
      // The sandbox sleeps or is over; who knows which tells the service.
      default -> false;
    };
  }

  /// Waits a while, or until the sandbox is known to have a new link.
  private void await(Duration time) throws InterruptedException {
    lock.lockInterruptibly();
    try {
      long left = time.toNanos();
      while (!pumpAgain && left > 0) {
        left = wanted.awaitNanos(left);
      }
      pumpAgain = false;
    } finally {
      lock.unlock();
    }
  }

  private static Duration longer(Duration retry) {
    Duration doubled = retry.multipliedBy(2);
    return doubled.compareTo(RETRY_MAX) > 0 ? RETRY_MAX : doubled;
  }

  private void take(OutputEvent event) {
    try {
      if (event instanceof OutputEvent.Exited exited) {
        // Memory first, log second, record third: whoever sees the exit sees an ended session.
        exited(exited);
      } else {
        log.append(event);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw Problem.of(ErrorCode.CANCELLED, "Reading the output was interrupted.").toException(e);
    }
  }

  private void exited(OutputEvent.Exited event) throws InterruptedException {
    lock.lock();
    try {
      if (session().state() != SessionState.RUNNING) {
        return;
      }
      Session before = session();
      record.inMemory(ended(SessionState.EXITED, Optional.of(event.exit()), Optional.empty()));
      try {
        log.append(event);
        log.flush();
        record.save();
      } catch (SpaceException e) {
        record.inMemory(before);
        throw e;
      }
      log.end();
    } finally {
      lock.unlock();
    }
  }

  private void release(Guest guest) {
    try {
      guest.release(session().id());
    } catch (SpaceException e) {
      LOG.debug("session {}: not released in the guest: {}", session().id(), e.problem().oneLine());
    }
  }

  /// Takes up a session that ran when its daemon died or its sandbox went to sleep. The exit may
  /// have reached the log already, but not the record.
  void resume() {
    log.exit()
        .ifPresentOrElse(
            exit -> end(SessionState.EXITED, Optional.of(exit), Optional.empty()), this::pump);
  }

  /// Ends a session whose process went with its sandbox.
  void lost(Problem why) {
    end(SessionState.LOST, Optional.empty(), Optional.of(why));
  }

  /// Ends a session that was never started.
  ///
  /// @return whether it was still to be started
  boolean cancel(Problem why) {
    starting.lock();
    try {
      if (session().state() != SessionState.CREATED) {
        return false;
      }
      end(SessionState.FAILED, Optional.empty(), Optional.of(why));
      return true;
    } finally {
      starting.unlock();
    }
  }

  private void end(SessionState state, Optional<ProcessExit> exit, Optional<Problem> error) {
    // A pump that waits for a slow reader holds no lock, so this can't wait for it.
    lock.lock();
    try {
      if (session().state().isTerminal()) {
        return;
      }
      Session before = session();
      record.inMemory(ended(state, exit, error));
      try {
        log.flush();
        record.save();
      } catch (SpaceException e) {
        if (state == SessionState.EXITED) {
          record.inMemory(before); // its pump tries again
        } else {
          log.end();
        }
        throw e;
      }
      log.end();
      if (pump != null && pump != Thread.currentThread()) {
        pump.interrupt();
      }
    } finally {
      lock.unlock();
    }
  }

  private Session ended(SessionState state, Optional<ProcessExit> exit, Optional<Problem> error) {
    return SessionChange.of(session()).state(state).exit(exit).error(error).endedAt(now()).build();
  }

  /// Changes the record.
  Session change(UnaryOperator<SessionChange> how) {
    lock.lock();
    try {
      record.inMemory(how.apply(SessionChange.of(session())).build());
      record.save();
      return session();
    } finally {
      lock.unlock();
    }
  }

  private Instant now() {
    return clock.instant();
  }

  Problem error() {
    return session()
        .error()
        .orElse(Problem.of(ErrorCode.INTERNAL, "The session ended for an unknown reason."));
  }

  void close() {
    lock.lock();
    try {
      if (pump != null) {
        pump.interrupt();
      }
    } finally {
      lock.unlock();
    }
    record.catchUp();
    log.close();
  }
}
