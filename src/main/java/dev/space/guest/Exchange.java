package dev.space.guest;

import dev.space.core.error.SpaceException;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.ArrayDeque;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// One streaming call used in blocking style: the sender waits while the transport is full, the
/// receiver holds at most [#WINDOW] messages, and interrupting either cancels the call.
final class Exchange<Q, P> implements AutoCloseable {

  /// Messages that may wait here for their reader; at 64 KiB each two megabytes. Fewer cost
  /// throughput: docs/decisions.md, "The guest link".
  static final int WINDOW = 32;

  private final ClientCall<Q, P> call;
  private final Function<Status, SpaceException> errors;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final ArrayDeque<P> inbox = new ArrayDeque<>(WINDOW);
  private @Nullable Status end;
  private int consumed;

  Exchange(
      Channel channel,
      MethodDescriptor<Q, P> method,
      CallOptions options,
      Function<Status, SpaceException> errors) {
    this.errors = errors;
    // The callbacks only hand over, so they may run on the transport's own thread.
    call = channel.newCall(method, options.withExecutor(Runnable::run));
    call.start(new Hand(), new Metadata());
    call.request(WINDOW);
  }

  /// Sends one message, waiting for room.
  ///
  /// @return false when the guest has ended the call already; [#next] then tells why
  boolean send(Q message) {
    lock.lock();
    try {
      await(() -> end != null || call.isReady());
      if (end != null) {
        return false;
      }
    } finally {
      lock.unlock();
    }
    call.sendMessage(message);
    return true;
  }

  void sendLast(Q message) {
    call.sendMessage(message);
    call.halfClose();
  }

  void halfClose() {
    call.halfClose();
  }

  /// The next message, or null at the end of the stream.
  @Nullable P next() {
    P message;
    boolean more = false;
    lock.lock();
    try {
      await(() -> !inbox.isEmpty() || end != null);
      message = inbox.poll();
      if (message == null) {
        Status status = end;
        if (status != null && !status.isOk()) {
          throw errors.apply(status);
        }
        return null;
      }
      if (++consumed == WINDOW / 2) {
        consumed = 0;
        more = true;
      }
    } finally {
      lock.unlock();
    }
    if (more) {
      call.request(WINDOW / 2);
    }
    return message;
  }

  /// Cancels what is not over yet.
  @Override
  public void close() {
    call.cancel("no longer wanted", null);
  }

  private void await(BooleanSupplier condition) {
    try {
      while (!condition.getAsBoolean()) {
        changed.await();
      }
    } catch (InterruptedException _) {
      call.cancel("interrupted", null);
      Thread.currentThread().interrupt();
      throw errors.apply(Status.CANCELLED.withDescription("the calling thread was interrupted"));
    }
  }

  private final class Hand extends ClientCall.Listener<P> {
    @Override
    public void onMessage(P message) {
      lock.lock();
      try {
        inbox.add(message);
        changed.signalAll();
      } finally {
        lock.unlock();
      }
    }

    @Override
    public void onReady() {
      lock.lock();
      try {
        changed.signalAll();
      } finally {
        lock.unlock();
      }
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      lock.lock();
      try {
        end = status;
        changed.signalAll();
      } finally {
        lock.unlock();
      }
    }
  }
}
