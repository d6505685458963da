package dev.space.cli;

import dev.space.core.error.SpaceException;
import java.util.concurrent.atomic.AtomicBoolean;

/// Something that has to be done once, whether a command ends by itself, fails or is interrupted
/// (Ctrl-C, SIGTERM, SIGHUP). While it is being done for a signal the process stays.
final class OnExit implements AutoCloseable {

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
