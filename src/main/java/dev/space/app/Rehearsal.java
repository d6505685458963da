package dev.space.app;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.Guest;
import dev.space.core.guest.GuestLink;
import dev.space.core.guest.ProcessSpec;
import dev.space.core.template.Resources;
import dev.space.core.vm.Vm;
import dev.space.core.vm.VmExit;
import dev.space.core.vm.VmIdentity;
import dev.space.core.vm.VmSpec;
import dev.space.core.vm.VmStats;
import dev.space.guest.GrpcGuestConnector;
import dev.space.host.Command;
import dev.space.host.ProcessIdentity;
import dev.space.host.Processes;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;

/// The guest link in use without a VM, for the training run of the start-up cache: the agent runs
/// as an ordinary process of this machine and is adopted, commanded and left again and again. The
/// cache then knows which methods are hot on the way to a first output and how they branch.
public final class Rehearsal {

  private static final int LINKS = 20;
  private static final int COMMANDS = 10;
  private static final Duration PATIENCE = Duration.ofSeconds(10);
  private static final long LOOK_NANOS = Duration.ofMillis(2).toNanos();

  private Rehearsal() {}

  /// Rehearses with an agent.
  ///
  /// @param agent its program; without it nothing is done
  /// @param scratch a folder to work in
  /// @param environment where programs are found
  public static void run(Path agent, Path scratch, Map<String, String> environment) {
    if (!Files.isExecutable(agent)) {
      return;
    }
    Path socket = scratch.resolve("agent.sock");
    ProcessIdentity process =
        new Processes(environment)
            .detach(
                Command.of(PATIENCE, agent.toString(), "-listen", "unix:" + socket),
                scratch.resolve("agent.log"),
                0,
                Optional.empty());
    try {
      await(socket, process);
      var connector = new GrpcGuestConnector(InstantSource.system(), new SecureRandom());
      var vm = new AgentVm(socket, new CompletableFuture<>());
      for (int i = 1; i <= LINKS; i++) {
        var nobody =
            new Guest.Adoption(
                false, "rehearsal", "", Map.of(), Optional.empty(), Optional.empty());
        try (GuestLink link = connector.connect(vm, i, nobody, PATIENCE)) {
          for (int j = 0; j < COMMANDS; j++) {
            command(link, "r" + i + "-" + j, List.of("echo", "hello"));
          }
          command(
              link, "r" + i, List.of("dd", "if=/dev/zero", "bs=64k", "count=64", "status=none"));
        }
      }
    } finally {
      process.kill();
      process.awaitGone(PATIENCE);
    }
  }

  private static void command(GuestLink link, String id, List<String> argv) {
    link.start(ProcessSpec.of(id, argv));
    link.output(id, 0, _ -> {});
    link.release(id);
  }

  private static void await(Path socket, ProcessIdentity process) {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (!Files.exists(socket)) {
      if (!process.alive() || System.nanoTime() > end) {
        throw Problem.of(ErrorCode.INTERNAL, "The agent does not listen on " + socket)
            .toException();
      }
      LockSupport.parkNanos(LOOK_NANOS);
    }
  }

  /// What a link needs of a VM: a way to the agent.
  private record AgentVm(Path socket, CompletableFuture<VmExit> exit) implements Vm {

    @Override
    public SocketChannel dial() {
      try {
        return SocketChannel.open(UnixDomainSocketAddress.of(socket));
      } catch (IOException e) {
        throw Problem.of(ErrorCode.VMM_FAILED, "The agent can't be reached").toException(e);
      }
    }

    @Override
    public VmSpec spec() {
      return new VmSpec("rehearsal", socket, Resources.DEFAULT, socket, socket);
    }

    @Override
    public VmIdentity identity() {
      return new VmIdentity(0, 0);
    }

    @Override
    public void pause() {
      throw notAVm();
    }

    @Override
    public void resume() {
      throw notAVm();
    }

    @Override
    public void save(Path state, MemoryTarget memory) {
      throw notAVm();
    }

    private static RuntimeException notAVm() {
      return Problem.of(ErrorCode.NOT_SUPPORTED, "There is no VM in a rehearsal").toException();
    }

    @Override
    public VmStats stats() {
      return new VmStats(0, 0, 0);
    }

    @Override
    public void kill() {
      exit.complete(new VmExit(VmExit.Kind.KILLED, "the rehearsal is over"));
    }

    @Override
    public String consoleTail() {
      return "";
    }
  }
}
