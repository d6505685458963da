package dev.space.guest;

import dev.space.core.vm.VmExit;
import dev.space.host.Command;
import dev.space.host.ProcessIdentity;
import dev.space.host.Processes;
import dev.space.image.TestImages;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;

/// The agent as an ordinary process on a unix socket, in the place of a VM.
public final class AgentProcess extends SocketVm implements AutoCloseable {

  private final ProcessIdentity process;

  public AgentProcess(Path directory) {
    Processes processes = new Processes(System.getenv());
    Path socket = directory.resolve("a.sock");
    Path log = directory.resolve("agent.log");
    super(socket, "");
    process =
        processes.detach(
            Command.of(
                Duration.ofSeconds(10), TestImages.agent().toString(), "-listen", "unix:" + socket),
            log,
            0,
            Optional.empty());
    while (!Files.exists(socket)) {
      if (!process.alive()) {
        throw new IllegalStateException("the agent ended: " + Processes.tail(log));
      }
      LockSupport.parkNanos(1_000_000);
    }
  }

  @Override
  public void kill() {
    process.kill();
    process.awaitGone(Duration.ofSeconds(5));
    super.kill();
  }

  /// Ends it as something other than its host does.
  void die() {
    process.kill();
    process.awaitGone(Duration.ofSeconds(5));
    exit().complete(new VmExit(VmExit.Kind.VMM_DIED, "it was killed"));
  }

  @Override
  public void close() {
    kill();
  }
}
