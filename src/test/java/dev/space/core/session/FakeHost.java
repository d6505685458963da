package dev.space.core.session;

import dev.space.core.Samples;
import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.Guest;
import dev.space.core.sandbox.Sandbox;
import dev.space.core.sandbox.SandboxService;
import dev.space.core.sandbox.SandboxState;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/// Sandboxes of project "p" that are in the state the test says.
public final class FakeHost implements SessionHost {

  public final Map<String, Guest> guests = new ConcurrentHashMap<>();
  public final Map<String, SandboxState> states = new ConcurrentHashMap<>();
  public final AtomicInteger uses = new AtomicInteger();

  public void add(String sandboxId, Guest guest) {
    guests.put(sandboxId, guest);
    states.put(sandboxId, SandboxState.RUNNING);
  }

  @Override
  public Sandbox get(Caller caller, String sandboxId) {
    return find(sandboxId)
        .filter(sandbox -> sandbox.project().equals(caller.project()))
        .orElseThrow(
            () ->
                Problem.of(ErrorCode.SANDBOX_NOT_FOUND, "There is no sandbox " + sandboxId)
                    .toException());
  }

  @Override
  public SandboxService.Use use(Caller caller, String sandboxId) {
    Sandbox sandbox = get(caller, sandboxId);
    Guest guest = guest(sandboxId);
    uses.incrementAndGet();
    return new SandboxService.Use() {
      @Override
      public Sandbox sandbox() {
        return sandbox;
      }

      @Override
      public Guest guest() {
        return guest;
      }

      @Override
      public void close() {
        uses.decrementAndGet();
      }
    };
  }

  @Override
  public Guest guest(String sandboxId) {
    Guest guest = guests.get(sandboxId);
    if (guest == null || states.get(sandboxId) != SandboxState.RUNNING) {
      throw Problem.of(ErrorCode.ILLEGAL_STATE, "The sandbox doesn't run.").toException();
    }
    return guest;
  }

  @Override
  public Optional<Sandbox> find(String sandboxId) {
    return Optional.ofNullable(states.get(sandboxId))
        .filter(state -> state != SandboxState.DELETED)
        .map(state -> Samples.sandbox(sandboxId, "p", Samples.NOW, state));
  }
}
