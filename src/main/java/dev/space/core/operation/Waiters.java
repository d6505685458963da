package dev.space.core.operation;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;

/// Threads that wait for a record to change. Register first, look at the record, then wait: no
/// change can fall in between.
public final class Waiters {

  private final ConcurrentHashMap<String, Set<CompletableFuture<Void>>> waiting =
      new ConcurrentHashMap<>();

  /// Looks again after every change of the record until the look is satisfied or the time is up.
  ///
  /// @param look says whether to stop
  /// @return whether it was satisfied
  public boolean await(String id, Duration wait, Supplier<Boolean> look) {
    long end = System.nanoTime() + wait.toNanos();
    while (true) {
      CompletableFuture<Void> change = new CompletableFuture<>();
      waiting.compute(
          id,
          (key, old) -> {
            Set<CompletableFuture<Void>> all = old == null ? ConcurrentHashMap.newKeySet() : old;
            all.add(change);
            return all;
          });
      try {
        if (look.get()) {
          return true;
        }
        change.get(end - System.nanoTime(), TimeUnit.NANOSECONDS);
      } catch (TimeoutException e) {
        return look.get();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return false;
      } catch (ExecutionException e) {
        throw new IllegalStateException(e);
      } finally {
        waiting.computeIfPresent(
            id,
            (key, all) -> {
              all.remove(change);
              return all.isEmpty() ? null : all;
            });
      }
    }
  }

  /// Wakes those who wait for this record.
  void changed(String id) {
    Set<CompletableFuture<Void>> all = waiting.get(id);
    if (all != null) {
      all.forEach(change -> change.complete(null));
    }
  }
}
