package dev.space.core.session;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.guest.Guest.SignalScope;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessInfo;
import dev.space.core.guest.ProcessSpec;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// A start under way: the one exchange with the guest in which a process is started and gives its
/// output. The pump makes it; whoever asked for the start waits for its beginning.
final class ProcessStart {

  private static final int SIGKILL = 9;

  /// That a process runs.
  record Begun(int pid, Instant at) {
    static Begun of(ProcessInfo info) {
      return new Begun(info.pid(), info.startedAt());
    }
  }

  private final Guest guest;
  private final ProcessSpec spec;
  private final boolean shell;
  private final CompletableFuture<Begun> begun = new CompletableFuture<>();
  private volatile @Nullable SpaceException failure;
  private volatile @Nullable Thread runner;

  /// @param shell whether the command is a shell's line, which any shell may run
  ProcessStart(Guest guest, ProcessSpec spec, boolean shell) {
    this.guest = guest;
    this.spec = spec;
    this.shell = shell;
  }

  Guest guest() {
    return guest;
  }

  /// Whether an error means that nothing was started, and never will be.
  static boolean never(ErrorCode code) {
    return code == ErrorCode.COMMAND_NOT_FOUND
        || code == ErrorCode.USER_NOT_FOUND
        || code == ErrorCode.WORKDIR_NOT_FOUND
        || code == ErrorCode.PERMISSION_DENIED
        || code == ErrorCode.INVALID_REQUEST;
  }

  /// Whether an error means that the sandbox was put away, or its link lost, under the start.
  static boolean again(ErrorCode code) {
    return code == ErrorCode.ILLEGAL_STATE || code == ErrorCode.GUEST_UNREACHABLE;
  }

  /// Starts the process and follows its output to its end.
  ///
  /// @param have number of the last event that is known already
  /// @param running told before the first event; when it refuses, the process is killed
  void run(long have, Consumer<Begun> running, Guest.OutputSink sink) {
    runner = Thread.currentThread();
    try {
      run(spec, have, running, sink);
    } catch (SpaceException e) {
      if (begun.isDone() || !shell || e.code() != ErrorCode.COMMAND_NOT_FOUND) {
        throw e;
      }
      run(CommandRules.withoutBash(spec), have, running, sink);
    }
  }

  private void run(ProcessSpec command, long have, Consumer<Begun> running, Guest.OutputSink sink) {
    if (have > 0) {
      // It was started by a daemon that died: it may be long before it says anything more.
      begin(Begun.of(guest.start(command)), running);
      guest.output(command.id(), have, sink);
      return;
    }
    guest.run(
        command,
        0,
        event -> {
          if (!begun.isDone()) {
            begin(
                event instanceof OutputEvent.Started started
                    ? new Begun(started.pid(), Instant.ofEpochMilli(started.atMillis()))
                    : Begun.of(guest.start(command)),
                running);
          }
          sink.accept(event);
        });
  }

  private void begin(Begun now, Consumer<Begun> running) {
    try {
      running.accept(now);
    } catch (SpaceException e) {
      guest.signal(spec.id(), SIGKILL, SignalScope.TREE);
      throw e;
    }
    begun.complete(now);
  }

  /// Gives up a start that has not begun.
  void cancel() {
    Thread running = runner;
    if (running != null && !begun.isDone()) {
      running.interrupt();
    }
  }

  /// Notes why it didn't begin.
  ///
  /// @return false when it has begun
  boolean failed(SpaceException why) {
    if (begun.isDone()) {
      return false;
    }
    failure = why;
    return true;
  }

  /// Tells whoever waits that it didn't begin.
  void fail() {
    SpaceException why = failure;
    begun.completeExceptionally(
        why != null
            ? why
            : Problem.of(ErrorCode.CANCELLED, "The start was given up.").toException());
  }

  /// Waits until the process runs.
  ///
  /// @return false when it doesn't run yet at the end of the time
  /// @throws SpaceException why it could not be started
  boolean awaitBegin(Duration most) {
    try {
      begun.get(most.toNanos(), TimeUnit.NANOSECONDS);
      return true;
    } catch (TimeoutException e) {
      return false;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw Problem.of(ErrorCode.CANCELLED, "The wait for the start was given up.").toException(e);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof SpaceException known) {
        throw known;
      }
      throw new IllegalStateException(e.getCause());
    }
  }
}
