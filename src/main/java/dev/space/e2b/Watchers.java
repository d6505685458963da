package dev.space.e2b;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.FileEntry;
import dev.space.core.guest.Guest.WatchSpec;
import dev.space.core.guest.WatchEvent;
import dev.space.e2b.proto.filesystem.EventType;
import dev.space.e2b.proto.filesystem.FilesystemEvent;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/// Watches that are polled: events queue up between two polls. The Python SDK polls right after a
/// write has returned and expects its events to be there, while events travel on a stream of their
/// own: a drain has the guest put a mark into that stream and waits for it. Guests that were
/// suspended with an agent from before there were marks are waited for until the stream was quiet
/// for a moment, a longer one where the guest is slow to answer.
final class Watchers {

  private static final int EVENTS_MAX = 10_000;
  private static final int WATCHERS_MAX = 1000;
  private static final long QUIET_NANOS_MIN = 20_000_000;
  private static final long QUIET_NANOS_MAX = 500_000_000;
  private static final long DRAIN_NANOS_MAX = 2_000_000_000;
  private static final long MARK_NANOS_MAX = 10_000_000_000L;

  private final Map<String, Watcher> watchers = new ConcurrentHashMap<>();
  private final AtomicLong counter = new AtomicLong();

  private static final class Watcher {
    private final String sandboxId;
    private final WatchSpec spec;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition arrived = lock.newCondition();
    private final ArrayDeque<FilesystemEvent> events = new ArrayDeque<>();
    private final CompletableFuture<Void> armed = new CompletableFuture<>();
    private long mark;
    private boolean over;
    private Optional<Thread> thread = Optional.empty();

    private Watcher(String sandboxId, WatchSpec spec) {
      this.sandboxId = sandboxId;
      this.spec = spec;
    }

    private void add(WatchEvent event) {
      lock.lock();
      try {
        toE2b(event).filter(_ -> events.size() < EVENTS_MAX).ifPresent(events::add);
        mark = Math.max(mark, event.mark());
        arrived.signalAll();
      } finally {
        lock.unlock();
      }
    }

    private void end() {
      lock.lock();
      try {
        over = true;
        arrived.signalAll();
      } finally {
        lock.unlock();
      }
    }

    private List<FilesystemEvent> drainTo(long wanted) throws InterruptedException {
      lock.lock();
      try {
        long left = MARK_NANOS_MAX;
        while (mark < wanted && !over && left > 0) {
          left = arrived.awaitNanos(left);
        }
        return take();
      } finally {
        lock.unlock();
      }
    }

    private List<FilesystemEvent> take() {
      List<FilesystemEvent> all = new ArrayList<>(events);
      events.clear();
      return all;
    }

    private List<FilesystemEvent> drainQuiet(long quietNanos) throws InterruptedException {
      lock.lock();
      try {
        long end = System.nanoTime() + DRAIN_NANOS_MAX;
        boolean quiet = false;
        while (!quiet && System.nanoTime() < end) {
          int before = events.size();
          boolean _ = arrived.await(quietNanos, TimeUnit.NANOSECONDS);
          quiet = events.size() == before;
        }
        return take();
      } finally {
        lock.unlock();
      }
    }
  }

  /// Sets a watch and returns when it is armed.
  String create(EnvdCall call, WatchSpec spec) {
    if (watchers.size() >= WATCHERS_MAX) {
      throw new ConnectException(
          ConnectCode.RESOURCE_EXHAUSTED, "There are " + WATCHERS_MAX + " watchers already");
    }
    String id = "w" + counter.incrementAndGet();
    var watcher = new Watcher(call.sandbox().id(), spec);
    watcher.thread =
        Optional.of(
            Thread.ofVirtual()
                .name("e2b-watcher-" + id)
                .start(() -> follow(call, spec, id, watcher)));
    watchers.put(id, watcher);
    try {
      watcher.armed.join();
    } catch (CompletionException e) {
      watchers.remove(id);
      if (e.getCause() instanceof SpaceException problem) {
        throw problem;
      }
      throw e;
    }
    return id;
  }

  private void follow(EnvdCall call, WatchSpec spec, String id, Watcher watcher) {
    try (var use = call.sandboxes().use(call.caller(), call.sandbox().id())) {
      use.guest()
          .watch(
              spec.named(guestName(id)),
              event -> {
                if (event.kind() == WatchEvent.Kind.ARMED) {
                  watcher.armed.complete(null);
                } else {
                  watcher.add(event);
                }
              });
    } catch (RuntimeException e) {
      watcher.armed.completeExceptionally(e);
    } finally {
      watcher.armed.cancel(false);
      watchers.remove(id);
      watcher.end();
    }
  }

  List<FilesystemEvent> drain(EnvdCall call, String id) throws InterruptedException {
    Watcher watcher = find(call, id);
    Optional<Long> mark = mark(call, id);
    return mark.isPresent()
        ? watcher.drainTo(mark.get())
        : watcher.drainQuiet(quiet(call, watcher.spec));
  }

  private static Optional<Long> mark(EnvdCall call, String id) {
    try (var use = call.use()) {
      return Optional.of(use.guest().markWatch(guestName(id)));
    } catch (SpaceException e) {
      if (e.code() == ErrorCode.NOT_SUPPORTED) {
        return Optional.empty();
      }
      if (e.code() == ErrorCode.NOT_FOUND) {
        // The watch has ended; what it reported before is given once more.
        return Optional.of(0L);
      }
      throw e;
    }
  }

  private static String guestName(String id) {
    return "e2b-" + id;
  }

  /// How long no event may come before all have: some times what the guest takes for an answer.
  private static long quiet(EnvdCall call, WatchSpec spec) {
    long before = System.nanoTime();
    try (var use = call.use()) {
      FileEntry _ = use.guest().stat(spec.path(), spec.user());
    } catch (SpaceException e) {
      if (e.code() != ErrorCode.FILE_NOT_FOUND) {
        throw e;
      }
    }
    return Math.clamp(3 * (System.nanoTime() - before), QUIET_NANOS_MIN, QUIET_NANOS_MAX);
  }

  void remove(EnvdCall call, String id) {
    Watcher watcher = find(call, id);
    watchers.remove(id);
    watcher.thread.ifPresent(Thread::interrupt);
  }

  private Watcher find(EnvdCall call, String id) {
    Watcher watcher = watchers.get(id);
    if (watcher == null || !watcher.sandboxId.equals(call.sandbox().id())) {
      throw new ConnectException(ConnectCode.NOT_FOUND, "watcher with id " + id + " not found");
    }
    return watcher;
  }

  static Optional<FilesystemEvent> toE2b(WatchEvent event) {
    Optional<EventType> type =
        switch (event.kind()) {
          case CREATE -> Optional.of(EventType.EVENT_TYPE_CREATE);
          case WRITE -> Optional.of(EventType.EVENT_TYPE_WRITE);
          case REMOVE -> Optional.of(EventType.EVENT_TYPE_REMOVE);
          case RENAME -> Optional.of(EventType.EVENT_TYPE_RENAME);
          case CHMOD -> Optional.of(EventType.EVENT_TYPE_CHMOD);
          case ARMED, OVERFLOW, MARK -> Optional.empty();
        };
    return type.map(
        t -> {
          FilesystemEvent.Builder e = FilesystemEvent.newBuilder().setName(event.name()).setType(t);
          event.entry().ifPresent(entry -> e.setEntry(Entries.info(entry)));
          return e.build();
        });
  }
}
