package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.wire.WireException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/// Says how often a connection to a session that broke is made again, with growing pauses. A daemon
/// that is being restarted is worth waiting for; one that refuses is not.
final class Retries {

  private static final int ATTEMPTS_MAX = 20;
  private static final Duration PAUSE_MAX = Duration.ofSeconds(2);
  private static final long PAUSE_FIRST_MILLIS = 50;

  private int attempts;

  /// Pauses if another attempt may help, and says whether it may.
  ///
  /// @param progress whether the attempt that failed got further than the one before
  boolean again(Exception failure, boolean progress) throws InterruptedException {
    attempts = progress ? 1 : attempts + 1;
    if (!mayPass(failure) || attempts > ATTEMPTS_MAX) {
      return false;
    }
    long millis = Math.min(PAUSE_MAX.toMillis(), PAUSE_FIRST_MILLIS << Math.min(attempts, 6));
    boolean never = new CountDownLatch(1).await(millis, TimeUnit.MILLISECONDS);
    assert !never;
    return true;
  }

  /// Whether the connection broke; else the server refused.
  private static boolean mayPass(Exception e) {
    return switch (e) {
      case SpaceException known ->
          known.code() == ErrorCode.SHUTTING_DOWN
              || (known.getCause() instanceof WireException wire && mayPass(wire));
      default ->
          !(e instanceof WireException wire) || wire.fault() != WireException.Fault.MALFORMED;
    };
  }
}
