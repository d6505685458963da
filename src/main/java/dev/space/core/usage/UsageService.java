package dev.space.core.usage;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.node.NodeRuntime;
import dev.space.core.sandbox.Sandbox;
import dev.space.core.sandbox.SandboxState;
import dev.space.core.store.Store;
import java.time.Duration;
import java.time.InstantSource;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Asks the guest of every running sandbox what it uses, every few seconds, and keeps the last
/// [#KEPT_MAX] answers of each in memory. To be asked is no use of a sandbox: it never wakes one
/// and never keeps one from being idle.
public final class UsageService implements AutoCloseable {

  /// How often guests are asked.
  public static final Duration INTERVAL = Duration.ofSeconds(5);

  /// Samples that are kept of one sandbox: half an hour, about 40 KiB.
  public static final int KEPT_MAX = 360;

  private static final Logger LOG = LoggerFactory.getLogger(UsageService.class);

  /// A sample that is younger is as good as a new one.
  private static final Duration FRESH = Duration.ofMillis(500);

  private final Store store;
  private final NodeRuntime node;
  private final InstantSource clock;
  private final Duration interval;
  private final ConcurrentHashMap<String, UsageTrack> tracks = new ConcurrentHashMap<>();
  private final CountDownLatch closed = new CountDownLatch(1);

  /// Begins to sample.
  public UsageService(Store store, NodeRuntime node, InstantSource clock, Duration interval) {
    this.store = store;
    this.node = node;
    this.clock = clock;
    this.interval = interval;
    Thread.ofPlatform().daemon().name("usage").start(this::run);
  }

  /// @param now taken for the answer; empty when the sandbox doesn't run
  /// @param samples oldest first
  public record Usage(Optional<UsageSample> now, List<UsageSample> samples) {}

  /// What a sandbox uses.
  ///
  /// @param most how many of the latest samples
  /// @throws SpaceException SANDBOX_NOT_FOUND
  public Usage usage(Caller caller, String sandboxId, int most) {
    Sandbox sandbox =
        store
            .<Optional<Sandbox>>read(tx -> tx.sandboxes().find(caller.project(), sandboxId))
            .filter(s -> s.state() != SandboxState.DELETED)
            .orElseThrow(
                () ->
                    Problem.of(ErrorCode.SANDBOX_NOT_FOUND, "There is no such sandbox.")
                        .remedy("List the sandboxes there are: GET /v1/sandboxes.")
                        .toException());
    Optional<UsageSample> now =
        sandbox.state() == SandboxState.RUNNING
            ? track(sandboxId).sample(clock, () -> node.guest(sandboxId).stats(), FRESH)
            : Optional.empty();
    var track = Optional.ofNullable(tracks.get(sandboxId));
    return new Usage(now, track.map(t -> t.latest(most)).orElse(List.of()));
  }

  private UsageTrack track(String sandboxId) {
    return tracks.computeIfAbsent(sandboxId, _ -> new UsageTrack(KEPT_MAX));
  }

  private void run() {
    try {
      while (!closed.await(interval.toNanos(), TimeUnit.NANOSECONDS)) {
        try {
          round();
        } catch (RuntimeException e) {
          LOG.debug("sampling failed", e);
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void round() {
    EnumSet<SandboxState> alive = EnumSet.allOf(SandboxState.class);
    alive.removeIf(SandboxState::isOver);
    List<Sandbox> sandboxes = store.read(tx -> tx.sandboxes().inStates(alive));
    Set<String> ids = sandboxes.stream().map(Sandbox::id).collect(Collectors.toSet());
    tracks.keySet().retainAll(ids);
    for (Sandbox sandbox : sandboxes) {
      if (sandbox.state() == SandboxState.RUNNING) {
        String id = sandbox.id();
        UsageTrack track = track(id);
        // A guest that doesn't answer holds up nobody but itself.
        Thread.ofVirtual()
            .name("usage-" + id)
            .start(() -> track.trySample(clock, () -> node.guest(id).stats()));
      }
    }
  }

  @Override
  public void close() {
    closed.countDown();
  }
}
