package dev.space.guest;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.guest.GuestConnector;
import dev.space.core.guest.GuestLink;
import dev.space.core.vm.Vm;
import dev.space.guest.proto.HelloReply;
import java.nio.channels.SocketChannel;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;

/// Opens guest links over the byte stream a VM gives.
///
/// The stream is opened once and the first call waits in it: QEMU takes the connection at once and
/// the guest answers when it is up. A VMM that refuses the connection until then is asked again; so
/// is one whose guest took the connection and says nothing on it.
public final class GrpcGuestConnector implements GuestConnector {

  /// Version of `proto/agent.proto` this side speaks.
  private static final int PROTOCOL = 1;

  private static final long RETRY_NANOS = Duration.ofMillis(5).toNanos();

  private final Adoptions adoptions;

  public GrpcGuestConnector(InstantSource clock, SecureRandom random) {
    adoptions = new Adoptions(clock, random);
  }

  @Override
  public GuestLink connect(Vm vm, long generation, Guest.Adoption adoption, Duration deadline) {
    return open(vm, new Until(deadline), Optional.of(new Adopting(generation, adoption)));
  }

  private record Adopting(long generation, Guest.Adoption adoption) {}

  @Override
  public GuestLink greet(Vm vm, Duration deadline) {
    return open(vm, new Until(deadline), Optional.empty());
  }

  private GrpcGuestLink open(Vm vm, Until until, Optional<Adopting> adopting) {
    while (true) {
      try {
        return attempt(vm, until, adopting);
      } catch (SpaceException e) {
        if (vm.exit().isDone()) {
          throw Calls.died(vm.exit().join()).toException(e);
        }
        // INTERNAL: what came made no sense, as when it begins in the middle of something.
        boolean again =
            e.code() == ErrorCode.VMM_FAILED
                || e.code() == ErrorCode.GUEST_UNREACHABLE
                || e.code() == ErrorCode.INTERNAL;
        if (!again || until.over()) {
          throw late(e, vm, until.whole());
        }
        LockSupport.parkNanos(RETRY_NANOS);
        if (Thread.currentThread().isInterrupted()) {
          throw Problem.of(ErrorCode.CANCELLED, "The connection to the guest was given up.")
              .toException(e);
        }
      }
    }
  }

  /// The greeting and the adoption travel together: a guest takes milliseconds to turn to the host,
  /// and that twice.
  private GrpcGuestLink attempt(Vm vm, Until until, Optional<Adopting> adopting) {
    SocketChannel stream = vm.dial();
    LinkChannel channel = new LinkChannel(stream);
    GrpcGuestLink link = new GrpcGuestLink(channel, new Calls(channel, vm.exit()), adoptions);
    try {
      Future<HelloReply> greeting = link.hello(until.left());
      if (vm.patience().compareTo(until.left()) < 0) {
        Thread.ofVirtual().name("greeting").start(() -> expect(greeting, vm.patience(), link));
      }
      adopting.ifPresent(a -> link.adopt(a.generation(), a.adoption(), until.left()));
      int protocol = link.greeted(greeting).getProtocol();
      if (protocol != PROTOCOL) {
        throw Problem.of(
                ErrorCode.NOT_SUPPORTED,
                "The guest's agent speaks protocol " + protocol + ", this service " + PROTOCOL)
            .remedy("Build the template again.")
            .toException();
      }
      return link;
    } catch (SpaceException e) {
      link.close();
      throw e;
    }
  }

  /// Gives up a link whose greeting isn't answered: nothing got through on it, so what waits there
  /// was not done and may be asked again on another. An adoption that got through may not.
  private static void expect(Future<HelloReply> greeting, Duration patience, GrpcGuestLink link) {
    try {
      greeting.get(patience.toNanos(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException _) {
      link.close();
    } catch (ExecutionException | CancellationException _) {
      // Who waits for it is told.
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
    }
  }

  private static SpaceException late(SpaceException e, Vm vm, Duration deadline) {
    return switch (e.code()) {
      case DEADLINE_EXCEEDED, GUEST_UNREACHABLE, VMM_FAILED ->
          Problem.of(
                  ErrorCode.GUEST_UNREACHABLE,
                  "The guest's agent did not answer within " + deadline.toMillis() + " ms.")
              .because(console(vm))
              .remedy(
                  "On a host that is overloaded try again; else the guest's kernel or agent is at"
                      + " fault: look at its console above, and run `space doctor`.")
              .toException(e);
      default -> e;
    };
  }

  private static String console(Vm vm) {
    String tail = vm.consoleTail();
    return tail.isBlank() ? "nothing on its console" : "its console ends with:\n" + tail;
  }

  /// A deadline on the monotonic clock.
  private record Until(long start, Duration whole) {
    Until(Duration whole) {
      this(System.nanoTime(), whole);
    }

    Duration left() {
      return whole.minusNanos(System.nanoTime() - start);
    }

    boolean over() {
      return !left().isPositive();
    }
  }
}
