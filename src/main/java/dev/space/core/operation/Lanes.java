package dev.space.core.operation;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Serialises the work on each sandbox: jobs of one key run one after the other in the order they
/// came, on a virtual thread; jobs of different keys run side by side. A lane that has nothing to
/// do costs nothing.
public final class Lanes implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(Lanes.class);
  private static final int STRIPES = 256;

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition idle = lock.newCondition();
  private final Map<String, Lane> lanes = new HashMap<>();
  private final ReentrantLock[] stripes = new ReentrantLock[STRIPES];
  private boolean closed;

  public Lanes() {
    for (int i = 0; i < STRIPES; i++) {
      stripes[i] = new ReentrantLock(true);
    }
  }

  private static final class Lane {
    private final Deque<Job> waiting = new ArrayDeque<>();
    private @Nullable Job running;
  }

  /// A piece of work in a lane.
  public static final class Job {
    private final Work work;
    private final CountDownLatch ended = new CountDownLatch(1);
    private final ReentrantLock lock = new ReentrantLock();
    private boolean preempted;
    private @Nullable Thread inCall;

    private Job(Work work) {
      this.work = work;
    }

    /// Makes a call that a preemption may interrupt. Outside of such calls a job is never
    /// interrupted.
    ///
    /// @throws SpaceException CANCELLED when the job was preempted before the call
    public <T> T call(Supplier<T> call) {
      lock.lock();
      try {
        if (preempted) {
          throw Problem.of(ErrorCode.CANCELLED, "a delete came first").toException();
        }
        inCall = Thread.currentThread();
      } finally {
        lock.unlock();
      }
      try {
        return call.get();
      } finally {
        lock.lock();
        try {
          inCall = null;
          Thread.interrupted(); // a preemption's interrupt ends with the call it was meant for
        } finally {
          lock.unlock();
        }
      }
    }

    /// Whether something that wins over it came.
    public boolean isPreempted() {
      lock.lock();
      try {
        return preempted;
      } finally {
        lock.unlock();
      }
    }

    private void preempt() {
      lock.lock();
      try {
        preempted = true;
        if (inCall != null) {
          inCall.interrupt();
        }
      } finally {
        lock.unlock();
      }
    }

    /// Waits until the job is over and says whether it is.
    public boolean awaitEnd(Duration wait) {
      try {
        return ended.await(wait.toNanos(), TimeUnit.NANOSECONDS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return false;
      }
    }
  }

  /// What a job does.
  @FunctionalInterface
  public interface Work {
    void run(Job job);
  }

  /// Runs a short section alone among the sections of this key: record and [#submit] in one, so
  /// that jobs run in the order of their records.
  public <T> T inOrder(String key, Supplier<T> section) {
    ReentrantLock stripe = stripes[Math.floorMod(key.hashCode(), STRIPES)];
    stripe.lock();
    try {
      return section.get();
    } finally {
      stripe.unlock();
    }
  }

  /// Puts a job at the end of a lane. After [#close] it is dropped: the next start finds its
  /// record.
  public Job submit(String key, Work work) {
    Job job = new Job(work);
    lock.lock();
    try {
      if (closed) {
        job.ended.countDown();
        return job;
      }
      Lane lane = lanes.computeIfAbsent(key, k -> new Lane());
      lane.waiting.add(job);
      if (lane.running == null) {
        startNext(key, lane);
      }
    } finally {
      lock.unlock();
    }
    return job;
  }

  private void startNext(String key, Lane lane) {
    Job job = lane.waiting.poll();
    lane.running = job;
    if (job == null) {
      lanes.remove(key);
      if (lanes.isEmpty()) {
        idle.signalAll();
      }
      return;
    }
    Thread.ofVirtual().name("lane-" + key).start(() -> run(key, lane, job));
  }

  private void run(String key, Lane lane, Job job) {
    try {
      job.work.run(job);
    } catch (SpaceException e) {
      if (e.code() != ErrorCode.SHUTTING_DOWN) {
        LOG.warn("a job of {} is left for the next start: {}", key, e.getMessage());
      }
    } catch (RuntimeException e) {
      LOG.error("a job of {} ended by a defect", key, e);
    } finally {
      lock.lock();
      try {
        startNext(key, lane);
      } finally {
        lock.unlock();
      }
      job.ended.countDown();
    }
  }

  /// Drops what waits in a lane and interrupts what runs. What is submitted later runs after that.
  ///
  /// @return the jobs that were dropped or are being interrupted
  public List<Job> preempt(String key) {
    List<Job> hit = new ArrayList<>();
    lock.lock();
    try {
      Lane lane = lanes.get(key);
      if (lane == null) {
        return hit;
      }
      lane.waiting.forEach(job -> job.ended.countDown());
      lane.waiting.clear();
      if (lane.running != null) {
        hit.add(lane.running);
      }
    } finally {
      lock.unlock();
    }
    hit.forEach(Job::preempt);
    return hit;
  }

  /// How many lanes have work, for tests.
  public int busy() {
    lock.lock();
    try {
      return lanes.size();
    } finally {
      lock.unlock();
    }
  }

  /// Takes no more jobs and drops those that wait; those that run go on.
  @Override
  public void close() {
    lock.lock();
    try {
      closed = true;
      for (Lane lane : lanes.values()) {
        lane.waiting.forEach(job -> job.ended.countDown());
        lane.waiting.clear();
      }
    } finally {
      lock.unlock();
    }
  }

  /// Waits until no job runs and says whether that is so.
  public boolean awaitIdle(Duration wait) {
    lock.lock();
    try {
      long left = wait.toNanos();
      while (!lanes.isEmpty()) {
        if (left <= 0) {
          return false;
        }
        left = idle.awaitNanos(left);
      }
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    } finally {
      lock.unlock();
    }
  }
}
