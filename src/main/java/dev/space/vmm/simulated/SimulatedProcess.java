package dev.space.vmm.simulated;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.Guest;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.OutputEvent.Stream;
import dev.space.core.guest.ProcessExit;
import dev.space.core.guest.ProcessInfo;
import dev.space.core.guest.ProcessSpec;
import dev.space.vmm.simulated.GuestImage.SavedProcess;
import java.time.Instant;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// A process of a simulated guest: a program on a virtual thread of its own, that takes one step at
/// a time under this process's lock and none while the guest stands still.
final class SimulatedProcess implements Shell.Terminal {

  /// Output that is kept for readers yet to come.
  static final long LOG_BYTES_MAX = 1 << 20;

  /// How far the slowest reader may be behind before the process waits for it.
  static final long BACKLOG_BYTES_MAX = 256 * 1024;

  private static final int STDIN_BYTES_MAX = 1 << 20;
  private static final int EVENT_OVERHEAD = 64;
  private static final long NOW = -1;
  private static final Set<Integer> HARMLESS_SIGNALS = Set.of(17, 18, 23, 28);

  private static final class Reader {
    long ended;
  }

  private final SimulatedGuest guest;
  private final ProcessSpec spec;
  private final int pid;
  private final int uid;
  private final long startedMillis;
  private final Shell shell;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final EventLog log;
  private final ByteQueue stdin = new ByteQueue(STDIN_BYTES_MAX);
  private final Set<Reader> readers = new HashSet<>();
  private long stdinOffset;
  private boolean stdinClosed;
  private long deadlineUp;
  private ProcessSpec.@Nullable PtySize size;
  private @Nullable ProcessExit exit;

  SimulatedProcess(SimulatedGuest guest, ProcessSpec spec, int pid, int uid, Shell shell) {
    this.guest = guest;
    this.spec = spec;
    this.pid = pid;
    this.uid = uid;
    this.shell = shell;
    this.startedMillis = guest.clockMillis();
    this.stdinClosed = !spec.stdin() && spec.pty().isEmpty();
    this.deadlineUp =
        spec.timeout().map(t -> guest.upMillis() + t.toMillis()).orElse(Long.MAX_VALUE);
    this.size = spec.pty().orElse(null);
    this.log = new EventLog(LOG_BYTES_MAX, EVENT_OVERHEAD);
    log.add(new OutputEvent.Started(1, guest.clockMillis(), pid), Long.MAX_VALUE);
  }

  SimulatedProcess(SimulatedGuest guest, SavedProcess saved, int uid) {
    this.guest = guest;
    this.spec = saved.spec();
    this.pid = saved.pid();
    this.uid = uid;
    this.shell = Shell.restore(saved.shell());
    this.startedMillis = saved.startedMillis();
    this.log = new EventLog(LOG_BYTES_MAX, EVENT_OVERHEAD, saved);
    this.stdin.put(saved.stdin());
    this.stdinOffset = saved.stdinOffset();
    this.stdinClosed = saved.stdinClosed();
    this.deadlineUp = saved.deadlineUp();
    this.size = spec.pty().orElse(null);
    this.exit = saved.exit().orElse(null);
  }

  SavedProcess save() {
    lock.lock();
    try {
      return new SavedProcess(
          spec,
          pid,
          startedMillis,
          Optional.ofNullable(exit),
          log.save(),
          log.firstSeq(),
          log.ends(),
          stdin.peek(),
          stdinOffset,
          stdinClosed,
          deadlineUp,
          shell.save());
    } finally {
      lock.unlock();
    }
  }

  /// Runs the program until it ends or the guest is gone.
  void begin() {
    Thread.ofVirtual().name("simulated-" + spec.id()).start(this::run);
  }

  private void run() {
    while (!guest.gone()) {
      lock.lock();
      try {
        if (exit != null) {
          return;
        }
        if (!guest.running() || backlog() > BACKLOG_BYTES_MAX) {
          changed.await();
          continue;
        }
        if (guest.upMillis() >= deadlineUp) {
          end(new ProcessExit(-1, 9, false, true));
          return;
        }
        long until =
            switch (shell.step(guest, this, uid)) {
              case Shell.Step.Again _, Shell.Step.Done _ -> NOW;
              case Shell.Step.Until(long up) -> Math.min(up, deadlineUp);
              case Shell.Step.Input _ -> deadlineUp;
              case Shell.Step.Exit(int status) -> {
                end(new ProcessExit(status, 0, false, false));
                yield NOW;
              }
            };
        if (until == Long.MAX_VALUE) {
          changed.await();
        } else if (until != NOW && until > guest.upMillis()) {
          changed.await(until - guest.upMillis(), TimeUnit.MILLISECONDS);
        }
      } catch (InterruptedException e) {
        return;
      } finally {
        lock.unlock();
      }
    }
  }

  private void end(ProcessExit how) {
    exit = how;
    stdinClosed = true;
    log.add(new OutputEvent.Exited(log.lastSeq() + 1, guest.clockMillis(), how), Long.MAX_VALUE);
    changed.signalAll();
    guest.ended(shell);
  }

  private long backlog() {
    long slowest = log.end();
    for (Reader reader : readers) {
      slowest = Math.min(slowest, reader.ended);
    }
    return log.end() - slowest;
  }

  /// Wakes everybody who waits here, to look at the guest again.
  void nudge() {
    lock.lock();
    try {
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  void read(long afterSeq, Guest.OutputSink sink, SimulatedLink link) {
    Reader reader = new Reader();
    long after = afterSeq;
    lock.lock();
    try {
      reader.ended = log.endOf(after);
      readers.add(reader);
    } finally {
      lock.unlock();
    }
    try {
      while (true) {
        OutputEvent event = next(after, link);
        sink.accept(event);
        after = event.seq();
        lock.lock();
        try {
          reader.ended = log.endOf(after);
          changed.signalAll();
        } finally {
          lock.unlock();
        }
        if (event instanceof OutputEvent.Exited) {
          return;
        }
      }
    } finally {
      lock.lock();
      try {
        readers.remove(reader);
        changed.signalAll();
      } finally {
        lock.unlock();
      }
    }
  }

  private OutputEvent next(long after, SimulatedLink link) {
    lock.lock();
    try {
      while (true) {
        link.check();
        if (guest.running()) {
          if (after < log.lastSeq()) {
            return log.after(after);
          }
          if (exit != null) {
            throw Problem.of(
                    ErrorCode.INVALID_REQUEST,
                    "Process " + spec.id() + " has no event after " + after)
                .toException();
          }
        }
        changed.await();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw Problem.of(ErrorCode.CANCELLED, "Reading output was cancelled").toException(e);
    } finally {
      lock.unlock();
    }
  }

  long write(long offset, byte[] data, boolean eof, SimulatedLink link) {
    lock.lock();
    try {
      if (offset > stdinOffset) {
        throw Problem.of(
                ErrorCode.OFFSET_MISMATCH,
                "The input's next byte is " + stdinOffset + ", not " + offset)
            .toException();
      }
      int skip = (int) Math.min(data.length, stdinOffset - offset);
      byte[] rest = java.util.Arrays.copyOfRange(data, skip, data.length);
      while (!stdinClosed && stdin.size() + rest.length > STDIN_BYTES_MAX && stdin.size() > 0) {
        link.check();
        changed.await();
      }
      if (rest.length > 0 && stdinClosed) {
        throw Problem.of(ErrorCode.ILLEGAL_STATE, "The process's input is closed").toException();
      }
      take(rest);
      stdinOffset += rest.length;
      stdinClosed |= eof && size == null;
      changed.signalAll();
      return stdinOffset;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw Problem.of(ErrorCode.CANCELLED, "Writing input was cancelled").toException(e);
    } finally {
      lock.unlock();
    }
  }

  private void take(byte[] data) {
    if (size == null) {
      stdin.put(data);
      return;
    }
    for (byte b : data) {
      if (b == 3) {
        signalLocked(2);
      } else if (b == 4) {
        stdinClosed = true;
      } else {
        stdin.put(new byte[] {b == '\r' ? (byte) '\n' : b});
      }
    }
    if (exit == null && data.length > 0) {
      emit(Stream.PTY, data);
    }
  }

  void signal(int number) {
    lock.lock();
    try {
      signalLocked(number);
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  private void signalLocked(int number) {
    if (exit != null
        || HARMLESS_SIGNALS.contains(number)
        || shell.ignored.contains(number)
        || number == 2 && shell.interrupt()) {
      return;
    }
    end(new ProcessExit(-1, number, false, false));
  }

  void resize(ProcessSpec.PtySize to) {
    lock.lock();
    try {
      if (size == null) {
        throw Problem.of(ErrorCode.ILLEGAL_STATE, "The process has no terminal").toException();
      }
      size = to;
    } finally {
      lock.unlock();
    }
  }

  ProcessInfo info(boolean existed) {
    lock.lock();
    try {
      return new ProcessInfo(
          spec.id(),
          pid,
          Optional.ofNullable(exit),
          spec.argv(),
          spec.env(),
          shell.cwd,
          uid == 0 ? "root" : "user",
          spec.tag(),
          spec.pty().isPresent(),
          Instant.ofEpochMilli(startedMillis),
          log.lastSeq(),
          stdinOffset,
          existed);
    } finally {
      lock.unlock();
    }
  }

  boolean over() {
    lock.lock();
    try {
      return exit != null;
    } finally {
      lock.unlock();
    }
  }

  @Override
  public void emit(Stream stream, byte[] data) {
    long slowest = log.end() - backlog();
    log.add(new OutputEvent.Bytes(log.lastSeq() + 1, guest.clockMillis(), stream, data), slowest);
    changed.signalAll();
  }

  @Override
  public byte @Nullable [] input(int max) {
    byte[] data = stdin.take(max);
    if (data.length > 0) {
      changed.signalAll();
    }
    return data.length == 0 && stdinClosed ? null : data;
  }

  @Override
  public @Nullable Optional<String> line() {
    Optional<String> line = stdin.line();
    if (line.isEmpty() && stdinClosed) {
      String rest =
          new String(stdin.take(STDIN_BYTES_MAX), java.nio.charset.StandardCharsets.UTF_8);
      return rest.isEmpty() ? null : Optional.of(rest);
    }
    return line;
  }

  @Override
  public boolean pty() {
    return size != null;
  }

  @Override
  public String size() {
    ProcessSpec.PtySize now = size;
    return now == null ? "0 0" : now.rows() + " " + now.cols();
  }
}
