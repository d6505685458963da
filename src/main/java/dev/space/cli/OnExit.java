package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/// Something that has to be done once, whether a command ends by itself, fails or is interrupted
/// (Ctrl-C, SIGTERM, SIGHUP). While it is being done for a signal the process stays.
final class OnExit implements AutoCloseable {

  private static final long UNWIND_SECONDS_MAX = 10;

  private final Runnable action;
  private final AtomicBoolean taken = new AtomicBoolean();
  private final Thread hook = Thread.ofPlatform().name("on-exit").unstarted(this::runOnce);

  private OnExit(Runnable action) {
    this.action = action;
  }

  static OnExit of(Runnable action) {
    OnExit onExit = new OnExit(action);
    Runtime.getRuntime().addShutdownHook(onExit.hook);
    return onExit;
  }

  /// Does something that must be unwound when it is interrupted: it gets the interrupt that a
  /// signal means, and the process stays until it has cleaned up, for ten seconds at most.
  static void unwinding(Runnable work) {
    Thread worker = Thread.currentThread();
    CountDownLatch unwound = new CountDownLatch(1);
    AtomicBoolean signalled = new AtomicBoolean();
    OnExit onExit =
        of(
            () -> {
              signalled.set(true);
              worker.interrupt();
              try {
                boolean inTime = unwound.await(UNWIND_SECONDS_MAX, TimeUnit.SECONDS);
                assert inTime || worker.isAlive();
              } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
              }
            });
    try {
      work.run();
    } catch (SpaceException e) {
      throw signalled.get()
          ? Problem.of(ErrorCode.CANCELLED, "Interrupted")
              .remedy("Run it again: it goes on where it stopped.")
              .toException(e)
          : e;
    } finally {
      unwound.countDown();
      onExit.forget();
      onExit.close();
    }
  }

  /// Nothing has to be done any more.
  void forget() {
    taken.set(true);
  }

  private void runOnce() {
    if (taken.compareAndSet(false, true)) {
      try {
        action.run();
      } catch (SpaceException e) {
        // Whatever is left is swept by the daemon; the command's own error is what counts.
      }
    }
  }

  @Override
  public void close() {
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // The process is ending: the hook is running or has run. Waiting for it here would be in
      // vain.
      return;
    }
    runOnce();
  }
}
