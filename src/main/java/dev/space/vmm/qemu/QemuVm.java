package dev.space.vmm.qemu;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.vm.Vm;
import dev.space.core.vm.VmExit;
import dev.space.core.vm.VmIdentity;
import dev.space.core.vm.VmSpec;
import dev.space.core.vm.VmStats;
import dev.space.host.ProcessIdentity;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// One QEMU process.
///
/// A guest that powers off, reboots or panics leaves its process standing (`-no-shutdown`), so that
/// its console can still be read, by the next daemon if need be; it is then ended here.
final class QemuVm implements Vm {

  private static final Logger LOG = LoggerFactory.getLogger(QemuVm.class);

  /// For commands that QEMU answers out of its main loop. `stop` waits for the disks.
  static final Duration COMMAND_DEADLINE = Duration.ofSeconds(60);

  private static final Duration GONE_DEADLINE = Duration.ofSeconds(30);

  private final VmSpec spec;
  private final ProcessIdentity process;
  private final Qmp qmp;
  private final Console console;
  private final StateTransfer transfer;
  private final CompletableFuture<VmExit> exit = new CompletableFuture<>();
  private final AtomicBoolean ending = new AtomicBoolean();
  private final Runnable release;
  private volatile boolean killed;
  private volatile boolean forgotten;
  private volatile @Nullable SocketChannel link;

  /// @param release called when the process is gone
  QemuVm(
      VmSpec spec,
      Launcher.Started started,
      StateTransfer transfer,
      Events events,
      Runnable release) {
    this.spec = spec;
    this.transfer = transfer;
    process = started.process();
    qmp = started.qmp();
    console = new Console(qmp);
    this.release = release;
    events.onShutdown(reason -> Thread.ofVirtual().name("vm-end").start(() -> ended(reason)));
    events.onPortClosed(this::hangUp);
    qmp.closed().thenRun(() -> Thread.ofVirtual().name("vm-gone").start(this::gone));
  }

  @Override
  public VmSpec spec() {
    return spec;
  }

  @Override
  public VmIdentity identity() {
    return new VmIdentity(process.pid(), process.startTicks());
  }

  @Override
  public void pause() {
    command("stop");
  }

  @Override
  public void resume() {
    command("cont");
  }

  private void command(String name) {
    try {
      qmp.execute(name, COMMAND_DEADLINE);
    } catch (SpaceException e) {
      if (exit.isDone() && e.code() == ErrorCode.VMM_FAILED) {
        throw Problem.of(ErrorCode.VMM_FAILED, "The VM is gone.")
            .because(exit.join().detail())
            .toException(e);
      }
      throw e;
    }
  }

  @Override
  public void save(Path state, MemoryTarget memory) {
    transfer.save(state, memory);
  }

  boolean loadChanges(Path memory, Path changes) {
    return transfer.loadChanges(memory, changes);
  }

  void load(Path state) {
    transfer.load(state);
  }

  @Override
  public SocketChannel dial() {
    try {
      SocketChannel dialled =
          SocketChannel.open(
              UnixDomainSocketAddress.of(
                  Launcher.socket(spec.directory(), CommandLine.AGENT_SOCKET)));
      link = dialled;
      return dialled;
    } catch (IOException e) {
      throw Problem.of(ErrorCode.VMM_FAILED, "The agent's port can't be reached.")
          .because(String.valueOf(e.getMessage()))
          .toException(e);
    }
  }

  /// The guest closed its end of the agent's port.
  private void hangUp() {
    SocketChannel dialled = link;
    if (dialled != null) {
      try {
        dialled.close();
      } catch (IOException _) {
        // It is given up either way.
      }
    }
  }

  @Override
  public VmStats stats() {
    ProcessIdentity.Memory memory = process.memory();
    return new VmStats(process.cpuMillis(), memory.resident(), memory.own());
  }

  @Override
  public void kill() {
    killed = true;
    process.kill();
    if (forgotten && ending.compareAndSet(false, true)) {
      finish(VmExit.Kind.KILLED, "the host ended it");
    }
    try {
      exit.get(GONE_DEADLINE.toMillis(), TimeUnit.MILLISECONDS);
    } catch (TimeoutException | ExecutionException e) {
      throw Problem.of(ErrorCode.VMM_FAILED, "A VM did not end when it was killed.")
          .because("process " + process.pid() + " is still there")
          .toException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw Problem.of(ErrorCode.CANCELLED, "The wait for a VM's end was given up.").toException(e);
    }
  }

  @Override
  public CompletableFuture<VmExit> exit() {
    return exit.copy();
  }

  @Override
  public String consoleTail() {
    return console.tail();
  }

  @Override
  public void forget() {
    forgotten = true;
    qmp.close();
  }

  /// The guest ended by itself and the process stands.
  void ended(String reason) {
    if (killed || !ending.compareAndSet(false, true)) {
      return;
    }
    String tail = console.tail();
    boolean panicked = reason.equals("guest-panic") || tail.contains("Kernel panic");
    VmExit.Kind kind = panicked ? VmExit.Kind.PANICKED : VmExit.Kind.STOPPED;
    String what =
        panicked
            ? "the guest's kernel panicked"
            : reason.equals("guest-reset") ? "the guest rebooted" : "the guest powered off";
    process.kill();
    finish(kind, tail.isBlank() ? what : what + "; its console ends with:\n" + tail);
  }

  private void gone() {
    if (forgotten || !ending.compareAndSet(false, true)) {
      return;
    }
    // A control connection that broke without its process is a process out of control.
    process.kill();
    if (killed) {
      finish(VmExit.Kind.KILLED, "the host ended it");
      return;
    }
    String log = Launcher.log(spec.directory());
    finish(VmExit.Kind.VMM_DIED, log.isEmpty() ? "QEMU ended" : "QEMU ended; it said: " + log);
  }

  private void releaseLate() {
    while (!process.awaitGone(GONE_DEADLINE)) {
      LOG.warn("QEMU process {} of VM {} is still there", process.pid(), spec.id());
    }
    release.run();
  }

  private void finish(VmExit.Kind kind, String detail) {
    if (process.awaitGone(GONE_DEADLINE)) {
      release.run();
    } else {
      // Its user id is given to nobody else as long as it is there.
      LOG.warn("QEMU process {} of VM {} does not end", process.pid(), spec.id());
      Thread.ofVirtual().name("vm-lingers").start(this::releaseLate);
    }
    qmp.close();
    exit.complete(new VmExit(kind, detail));
  }
}
