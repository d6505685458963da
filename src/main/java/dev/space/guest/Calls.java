package dev.space.guest;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.vm.VmExit;
import io.grpc.CallOptions;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/// Makes calls on one channel and says truthfully why one failed.
final class Calls {

  /// How long after a lost link the end of its VM may become known.
  private static final long EXIT_GRACE_MILLIS = 300;

  /// A chunk has at most 64 KiB, an entry its attributes beside; bounds what a hostile guest can
  /// make a stream hold to this times [Exchange#WINDOW].
  private static final int STREAMED_MESSAGE_BYTES_MAX = 256 * 1024;

  private final LinkChannel channel;
  private final CompletableFuture<VmExit> exit;

  Calls(LinkChannel channel, CompletableFuture<VmExit> exit) {
    this.channel = channel;
    this.exit = exit;
  }

  <Q, P> P unary(MethodDescriptor<Q, P> method, Q request, Duration deadline) {
    CallOptions options =
        CallOptions.DEFAULT.withDeadlineAfter(
            Math.max(1, deadline.toNanos()), TimeUnit.NANOSECONDS);
    try {
      return ClientCalls.blockingUnaryCall(channel.grpc(), method, options, request);
    } catch (StatusRuntimeException e) {
      throw error(e.getStatus());
    }
  }

  /// Makes a call whose answer is waited for later.
  <Q, P> Future<P> send(MethodDescriptor<Q, P> method, Q request, Duration deadline) {
    CallOptions options =
        CallOptions.DEFAULT.withDeadlineAfter(
            Math.max(1, deadline.toNanos()), TimeUnit.NANOSECONDS);
    return ClientCalls.futureUnaryCall(channel.grpc().newCall(method, options), request);
  }

  /// Waits for an answer; its call has a deadline.
  <P> P await(Future<P> answer) {
    try {
      return answer.get();
    } catch (ExecutionException e) {
      throw error(Status.fromThrowable(e));
    } catch (InterruptedException e) {
      answer.cancel(true);
      Thread.currentThread().interrupt();
      throw error(Status.CANCELLED.withDescription("the calling thread was interrupted"));
    }
  }

  /// A call that streams in either direction and lasts as long as it wants.
  <Q, P> Exchange<Q, P> open(MethodDescriptor<Q, P> method) {
    CallOptions options = CallOptions.DEFAULT.withMaxInboundMessageSize(STREAMED_MESSAGE_BYTES_MAX);
    return new Exchange<>(channel.grpc(), method, options, this::error);
  }

  <Q, P> Exchange<Q, P> open(MethodDescriptor<Q, P> method, Q request) {
    Exchange<Q, P> call = open(method);
    call.sendLast(request);
    return call;
  }

  SpaceException error(Status status) {
    Problem problem =
        channel.closed().isDone() && status.getCode() != Status.Code.CANCELLED
            ? lost()
            : GuestErrors.refusal(status).orElseGet(this::lost);
    return problem.toException(status.asRuntimeException());
  }

  private Problem lost() {
    try {
      VmExit end = exit.get(EXIT_GRACE_MILLIS, TimeUnit.MILLISECONDS);
      return end.kind() == VmExit.Kind.KILLED ? putAway(end) : died(end);
    } catch (TimeoutException _) {
      // The VM lives; only its link is gone.
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
    } catch (ExecutionException e) {
      return Problem.of(ErrorCode.SANDBOX_DIED, "The sandbox's VM is gone.")
          .because(String.valueOf(e.getCause()));
    }
    return Problem.of(ErrorCode.GUEST_UNREACHABLE, "The link to the guest is lost.");
  }

  /// A VM in use is ended by its host for these reasons alone: its sandbox has not died.
  private static Problem putAway(VmExit end) {
    return Problem.of(
            ErrorCode.GUEST_UNREACHABLE, "The sandbox was suspended or deleted meanwhile.")
        .because(end.detail())
        .remedy("Look at its state; wake it when it is suspended, and try again.");
  }

  static Problem died(VmExit end) {
    String what =
        switch (end.kind()) {
          case KILLED -> "The sandbox's VM was ended.";
          case STOPPED -> "The guest powered itself off.";
          case PANICKED -> "The guest's kernel panicked.";
          case VMM_DIED -> "The sandbox's VM process died.";
        };
    return Problem.of(ErrorCode.SANDBOX_DIED, what).because(end.detail());
  }
}
