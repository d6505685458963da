package dev.space.guest;

import dev.space.host.Command;
import dev.space.host.ProcessIdentity;
import dev.space.host.Processes;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;

/// The agent as an ordinary process on a unix socket, in the place of a VM.
public final class AgentProcess extends SocketVm implements AutoCloseable {

  private static final Duration BUILD_DEADLINE = Duration.ofMinutes(5);

  private final ProcessIdentity process;

  public AgentProcess(Path directory) {
    Processes processes = new Processes(directory.resolve("scratch"));
    Path socket = directory.resolve("a.sock");
    Path log = directory.resolve("agent.log");
    super(socket, "");
    process =
        processes.detach(
            Command.of(binary(processes).toString(), "-listen", "unix:" + socket),
            log,
            0,
            Optional.empty(),
            Duration.ofSeconds(10));
    while (!Files.exists(socket)) {
      if (!process.alive()) {
        throw new IllegalStateException("the agent ended: " + Processes.tail(log));
      }
      LockSupport.parkNanos(1_000_000);
    }
  }

  /// The agent's binary, built when it isn't there.
  public static synchronized Path binary(Processes processes) {
    Path binary = Path.of(System.getProperty("space.agent.binary", "agent/bin/agent"));
    if (!Files.isExecutable(binary)) {
      Path go =
          Files.isExecutable(Path.of("/usr/local/go/bin/go"))
              ? Path.of("/usr/local/go/bin/go")
              : Path.of("go");
      processes.check(
          Command.of(go.toString(), "build", "-o", binary.toAbsolutePath().toString(), ".")
              .in(Path.of("agent"))
              .with(java.util.Map.of("CGO_ENABLED", "0")),
          BUILD_DEADLINE);
    }
    return binary.toAbsolutePath();
  }

  @Override
  public void kill() {
    process.kill();
    process.awaitGone(Duration.ofSeconds(5));
    super.kill();
  }

  @Override
  public void close() {
    kill();
  }
}
