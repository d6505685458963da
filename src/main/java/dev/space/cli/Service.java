package dev.space.cli;

import dev.space.app.SpaceConfig;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.wire.WireRequest;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/// The service that one call uses: the daemon that runs, else one started in this process.
final class Service implements AutoCloseable {

  private static final Duration ALIVE_TIME = Duration.ofSeconds(2);

  /// How often a call looks whether the data directory is free, when another holds it.
  private static final Duration TURN_PAUSE = Duration.ofMillis(100);

  private static final Duration DELETE_TIME = Duration.ofSeconds(30);

  private final Api api;
  private final Optional<Assembly.Running> own;

  private Service(Api api, Optional<Assembly.Running> own) {
    this.api = api;
    this.own = own;
  }

  /// A running service, or a new one in this process; then the machine is prepared first if need
  /// be.
  static Service findOrStart(Root root, Progress progress) {
    Location location = root.location();
    if (location.chosenUrl().isPresent()) {
      return new Service(root.api(), Optional.empty());
    }
    SpaceConfig config = config(root);
    boolean told = false;
    while (true) {
      Optional<String> local = location.localUrl().filter(url -> isAlive(url));
      if (local.isPresent()) {
        return new Service(new Api(local.get(), location.key()), Optional.empty());
      }
      try {
        Assembly assembly = root.assembly();
        assembly.prepare(config, progress::step);
        progress.step("starting the service");
        Assembly.Running running = assembly.start(config, false);
        return new Service(new Api(running.controlUrl(), location.key()), Optional.of(running));
      } catch (SpaceException e) {
        if (e.code() != ErrorCode.CONFLICT) {
          throw e;
        }
        // Another call has the data directory, or a daemon is about to be ready.
        if (!told) {
          progress.step("waiting for another space command");
          told = true;
        }
        pause(e);
      }
    }
  }

  private static SpaceConfig config(Root root) {
    SpaceConfig config = root.config(Optional.empty(), Map.of());
    InetSocketAddress anyPort = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
    return new SpaceConfig(
        config.dataDir(),
        anyPort,
        anyPort,
        Optional.empty(),
        Optional.empty(),
        SpaceConfig.E2b.OFF,
        config.vmm(),
        config.qemu(),
        config.firecracker(),
        config.boot(),
        config.limits(),
        config.sessions(),
        List.of(),
        config.onStop());
  }

  private static boolean isAlive(String url) {
    try {
      new Api(url, "").open(WireRequest.of("GET", "/healthz").within(ALIVE_TIME)).close();
      return true;
    } catch (SpaceException e) {
      return false;
    }
  }

  private static void pause(SpaceException waitingFor) {
    try {
      boolean never = new CountDownLatch(1).await(TURN_PAUSE.toMillis(), TimeUnit.MILLISECONDS);
      assert !never;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw waitingFor;
    }
  }

  Api api() {
    return api;
  }

  /// Deletes a sandbox. A daemon sees to it by itself; a service of this process must be done with
  /// it before it ends.
  void delete(String sandboxId) {
    var operation = api.delete("/v1/sandboxes/" + Api.part(sandboxId));
    if (own.isPresent()) {
      String id = operation.path("id").asString();
      api.get(
          "/v1/operations/" + Api.part(id) + "?wait=" + DELETE_TIME.toSeconds() + "s",
          DELETE_TIME.plusSeconds(5));
    }
  }

  @Override
  public void close() {
    own.ifPresent(Assembly.Running::close);
  }
}
