package dev.space.core;

import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.concurrent.atomic.AtomicReference;

/// A clock that stands still until it is moved.
public final class ManualClock implements InstantSource {

  private final AtomicReference<Instant> now;

  public ManualClock(Instant start) {
    now = new AtomicReference<>(start);
  }

  @Override
  public Instant instant() {
    return now.get();
  }

  public void advance(Duration by) {
    now.updateAndGet(t -> t.plus(by));
  }
}
