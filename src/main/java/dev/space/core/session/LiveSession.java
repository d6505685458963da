package dev.space.core.session;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessExit;
import dev.space.core.guest.ProcessInfo;
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

  private final SessionHost host;
  private final SessionRecords records;
  private final InstantSource clock;
  private final OutputLog log;
  private final Runnable idle;

  /// Guards changes of the record; never held while the guest is asked for anything.
  private final ReentrantLock lock = new ReentrantLock();

  private final Condition wanted = lock.newCondition();

  /// One start at a time.
  private final ReentrantLock starting = new ReentrantLock();

  /// Guards the place of the next byte of input; -1 while it isn't known.
  private final ReentrantLock input = new ReentrantLock();

  private long inputOffset = -1;
  private volatile Session session;
  private @Nullable Thread pump;
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
    this.session = session;
    this.log = log;
    this.host = host;
    this.records = records;
    this.clock = clock;
    this.idle = idle;
    if (session.state().isTerminal()) {
      log.end();
    }
  }

  Session session() {
    return session;
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
    if (session.state() == SessionState.CREATED) {
      starting.lock();
      try {
        if (session.state() == SessionState.CREATED) {
          startProcess(caller);
        }
      } finally {
        starting.unlock();
      }
    }
    if (session.state() == SessionState.FAILED) {
      throw error().toException();
    }
  }

  private void startProcess(Caller caller) {
    try (var use = host.use(caller, session.sandboxId())) {
      Guest guest = use.guest();
      ProcessInfo info;
      try {
        info = startInGuest(guest);
      } catch (SpaceException e) {
        if (neverStarted(e.code())) {
          end(SessionState.FAILED, Optional.empty(), Optional.of(e.problem()));
        }
        throw e;
      }
      running(info);
    }
  }

  private ProcessInfo startInGuest(Guest guest) {
    try {
      return guest.start(session.spec());
    } catch (SpaceException e) {
      if (session.shell() && e.code() == ErrorCode.COMMAND_NOT_FOUND) {
        return guest.start(CommandRules.withoutBash(session.spec()));
      }
      throw e;
    }
  }

  private static boolean neverStarted(ErrorCode code) {
    return code == ErrorCode.COMMAND_NOT_FOUND
        || code == ErrorCode.USER_NOT_FOUND
        || code == ErrorCode.WORKDIR_NOT_FOUND
        || code == ErrorCode.PERMISSION_DENIED
        || code == ErrorCode.INVALID_REQUEST;
  }

  private void running(ProcessInfo info) {
    // The record is written after the pump was set off: the first output doesn't wait for a disk.
    // A crash in between leaves a session that is "created" and whose start finds its process.
    Session changed;
    lock.lock();
    try {
      if (session.state() != SessionState.CREATED) {
        return;
      }
      changed =
          SessionChange.of(session)
              .state(SessionState.RUNNING)
              .pid(info.pid())
              .startedAt(info.startedAt())
              .build();
      session = changed;
      pumpLocked();
      save(changed);
    } finally {
      lock.unlock();
    }
  }

  /// Writes input at the end of all input. Its place is asked of the guest the first time.
  void appendStdin(Guest guest, byte[] data, boolean eof) {
    input.lock();
    try {
      long known = inputOffset;
      long at = known >= 0 ? known : guest.writeStdin(session.id(), 0, new byte[0], false);
      inputOffset = guest.writeStdin(session.id(), at, data, eof);
    } finally {
      input.unlock();
    }
  }

  /// Notes how far the input is after a write with a place of its own.
  void inputWritten(long nextOffset) {
    input.lock();
    try {
      inputOffset = Math.max(inputOffset, nextOffset);
    } finally {
      input.unlock();
    }
  }

  /// Makes sure that output of a running process flows.
  void pump() {
    lock.lock();
    try {
      if (session.state() == SessionState.RUNNING) {
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
    pump = Thread.ofVirtual().name("session-" + session.id()).start(this::runPump);
  }

  private void runPump() {
    boolean again = true;
    try {
      while (again) {
        move();
        again = again();
      }
    } finally {
      if (again) {
        lock.lock();
        try {
          pump = null;
        } finally {
          lock.unlock();
        }
      }
      idle.run();
    }
  }

  /// Decides in one step with the pump's end, so that a request to pump is never lost.
  private boolean again() {
    lock.lock();
    try {
      boolean again = pumpAgain && session.state() == SessionState.RUNNING;
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
    var caller = new Caller(session.project(), "session", session.id());
    SandboxService.@Nullable Use use = null;
    try {
      while (session.state() == SessionState.RUNNING) {
        long before = log.lastSeq();
        try {
          Guest guest = host.guest(session.sandboxId());
          if (use == null) {
            use = host.use(caller, session.sandboxId());
          }
          if (log.exit().isEmpty()) {
            guest.output(session.id(), before, this::take);
          }
          // The exit may have reached the log and not the disk.
          log.exit()
              .ifPresent(exit -> end(SessionState.EXITED, Optional.of(exit), Optional.empty()));
          if (session.state() == SessionState.RUNNING) {
            throw Problem.of(ErrorCode.INTERNAL, "The guest ended the output before the exit.")
                .toException();
          }
          release(guest);
          return;
        } catch (SpaceException e) {
          if (!retryable(e)) {
            return;
          }
        }
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
      LOG.warn("session {}: {}", session.id(), e.problem().oneLine());
    }
  }

  /// Whether to read on from the same sandbox in a moment. If not, the session was ended, or waits
  /// for the sandbox to run again.
  private boolean retryable(SpaceException e) {
    return switch (e.code()) {
      case GUEST_UNREACHABLE, INTERNAL, DEADLINE_EXCEEDED, TOO_MANY_REQUESTS -> {
        LOG.debug("session {}: output interrupted: {}", session.id(), e.problem().oneLine());
        yield true;
      }
      case DISK_FULL -> {
        // Nothing is lost: the guest keeps what isn't in the log, and its process waits for it.
        if (!fullTold) {
          fullTold = true;
          LOG.warn("session {}: {}", session.id(), e.problem().oneLine());
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
      if (session.state() != SessionState.RUNNING) {
        return;
      }
      Session before = session;
      session = ended(SessionState.EXITED, Optional.of(event.exit()), Optional.empty());
      try {
        log.append(event);
        log.flush();
        save(session);
      } catch (SpaceException e) {
        session = before;
        throw e;
      }
      log.end();
    } finally {
      lock.unlock();
    }
  }

  private void release(Guest guest) {
    try {
      guest.release(session.id());
    } catch (SpaceException e) {
      LOG.debug("session {}: not released in the guest: {}", session.id(), e.problem().oneLine());
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
      if (session.state() != SessionState.CREATED) {
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
      if (session.state().isTerminal()) {
        return;
      }
      Session before = session;
      session = ended(state, exit, error);
      try {
        log.flush();
        save(session);
      } catch (SpaceException e) {
        if (state == SessionState.EXITED) {
          session = before; // its pump tries again
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
    return SessionChange.of(session).state(state).exit(exit).error(error).endedAt(now()).build();
  }

  /// Changes the record.
  Session change(UnaryOperator<SessionChange> how) {
    lock.lock();
    try {
      session = how.apply(SessionChange.of(session)).build();
      save(session);
      return session;
    } finally {
      lock.unlock();
    }
  }

  private void save(Session changed) {
    if (!records.update(changed)) {
      // The sandbox was deleted with its records meanwhile, or the process was found again under a
      // record that an older daemon wrote. Memory is right in both cases.
      LOG.debug("session {}: no record of rev {} to change", changed.id(), changed.rev() - 1);
    }
  }

  private Instant now() {
    return clock.instant();
  }

  Problem error() {
    return session
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
    log.close();
  }
}
