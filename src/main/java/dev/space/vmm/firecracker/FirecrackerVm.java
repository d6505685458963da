package dev.space.vmm.firecracker;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.vm.Vm;
import dev.space.core.vm.VmExit;
import dev.space.core.vm.VmIdentity;
import dev.space.core.vm.VmSpec;
import dev.space.core.vm.VmStats;
import dev.space.host.DiskFull;
import dev.space.host.PlainText;
import dev.space.host.ProcessIdentity;
import dev.space.host.Processes;
import dev.space.vmm.firecracker.Phase.Call;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// One Firecracker process.
final class FirecrackerVm implements Vm {

  private static final Logger LOG = LoggerFactory.getLogger(FirecrackerVm.class);

  private static final Duration GONE_DEADLINE = Duration.ofSeconds(30);

  /// The slowest disk that a memory is saved to before the process is taken for stuck.
  private static final long SAVE_BYTES_PER_SECOND = 20L << 20;

  /// How much longer than a call that sets something up one may take that moves a guest, and one
  /// that loads or saves it.
  private static final int MOVE_FACTOR = 3;

  private static final int STATE_FACTOR = 6;
  private static final int TAIL_CHARS_MAX = 4096;
  private static final Duration PATIENCE = Duration.ofSeconds(10);

  /// What a VM is made of besides its process.
  ///
  /// @param call how long a call that sets something up may take
  /// @param exactHoles whether saved changes can be told by the holes of their file
  /// @param end ends the process, and what belongs to it
  /// @param release called when the process is gone and its words are read
  record Parts(
      VmSpec spec,
      Ground ground,
      Memory memory,
      StateFile.Manifest manifest,
      Duration call,
      boolean exactHoles,
      Runnable end,
      Runnable release) {}

  private final Parts parts;
  private final ProcessIdentity process;
  private final Api api;
  private final CompletableFuture<VmExit> exit = new CompletableFuture<>();
  private final AtomicBoolean ending = new AtomicBoolean();
  private volatile Phase phase;
  private volatile boolean killed;
  private volatile boolean halted;
  private volatile boolean forgotten;

  FirecrackerVm(Parts parts, ProcessIdentity process, Api api, Phase phase) {
    this.parts = parts;
    this.process = process;
    this.api = api;
    this.phase = phase;
    api.closed().thenRun(() -> Thread.ofVirtual().name("vm-gone").start(this::gone));
  }

  // -- calls

  /// Describes a part of the machine, or where the process writes to.
  void put(Call call, String path, Map<String, ?> body) {
    ask(call, () -> api.put(path, body, parts.call()));
  }

  void boot() {
    ask(
        Call.BOOT,
        () -> api.put("/actions", Map.of("action_type", "InstanceStart"), moveDeadline()));
  }

  /// @throws SpaceException SNAPSHOT_DAMAGED when it refuses what was saved; the process is gone
  void load() {
    try {
      ask(Call.LOAD, () -> api.put("/snapshot/load", Description.load(), stateDeadline(0)));
    } catch (SpaceException e) {
      if (e.code() != ErrorCode.VMM_FAILED) {
        throw e;
      }
      throw Problem.of(ErrorCode.SNAPSHOT_DAMAGED, "Firecracker could not load the saved state.")
          .because(e.problem().cause().orElse("it gives no reason"))
          .toException(e);
    }
  }

  /// Changes what a disk may take.
  void rate(String drive, Map<String, ?> body) {
    ask(Call.ADJUST, () -> api.patch("/drives/" + drive, body, parts.call()));
  }

  long waitedNanos() {
    return api.waitedNanos();
  }

  private void ask(Call call, Runnable exchange) {
    Phase next = phase.after(call);
    try {
      exchange.run();
    } catch (SpaceException e) {
      if (exit.isDone() && e.code() == ErrorCode.VMM_FAILED) {
        throw Problem.of(ErrorCode.VMM_FAILED, "The VM is gone.")
            .because(exit.join().detail())
            .toException(e);
      }
      throw e;
    }
    // The end of the process may have come between; nothing leads out of it.
    if (!(phase instanceof Phase.Dead)) {
      phase = next;
    }
  }

  private Duration moveDeadline() {
    return parts.call().multipliedBy(MOVE_FACTOR);
  }

  private Duration stateDeadline(long bytes) {
    return parts.call().multipliedBy(STATE_FACTOR).plusSeconds(bytes / SAVE_BYTES_PER_SECOND);
  }

  private long memoryBytes() {
    return (long) parts.spec().resources().memoryMib() << 20;
  }

  // -- the contract

  @Override
  public VmSpec spec() {
    return parts.spec();
  }

  @Override
  public VmIdentity identity() {
    return new VmIdentity(process.pid(), process.startTicks());
  }

  @Override
  public void pause() {
    ask(Call.PAUSE, () -> api.patch("/vm", Description.state("Paused"), moveDeadline()));
  }

  @Override
  public void resume() {
    ask(Call.RESUME, () -> api.patch("/vm", Description.state("Resumed"), moveDeadline()));
  }

  @Override
  public void save(Path state, MemoryTarget target) {
    phase.after(Call.SAVE);
    try {
      Path written = parts.ground().fresh(Ground.STATE);
      try (FileChannel in = FileChannel.open(written, StandardOpenOption.READ)) {
        switch (target) {
          case MemoryTarget.Full(Path file) -> parts.memory().saveFull(file, this::save);
          case MemoryTarget.Changes(Path file) ->
              parts.memory().saveChanges(file, parts.exactHoles(), this::save);
        }
        StateFile.write(state, parts.manifest(), whole(in));
      } finally {
        parts.ground().drop(Ground.STATE);
      }
    } catch (IOException e) {
      throw Problem.of(
              DiskFull.isSaidBy(e) ? ErrorCode.DISK_FULL : ErrorCode.VMM_FAILED,
              "A VM's state could not be saved.")
          .because(String.valueOf(e.getMessage()))
          .toException(e);
    }
  }

  private void save(String type, String memory) {
    try {
      ask(
          Call.SAVE,
          () ->
              api.put(
                  "/snapshot/create",
                  Description.save(type, memory),
                  stateDeadline(memoryBytes())));
    } catch (SpaceException e) {
      if (DiskFull.isSaidIn(e.problem().oneLine())) {
        throw Problem.of(ErrorCode.DISK_FULL, "A VM's memory could not be saved.")
            .because(e.problem().oneLine())
            .toException(e);
      }
      throw e;
    }
  }

  private static byte[] whole(FileChannel in) throws IOException {
    long size = in.size();
    if (size <= 0 || size > StateFile.STATE_BYTES_MAX) {
      throw new IOException("Firecracker wrote a state of " + size + " bytes");
    }
    ByteBuffer all = ByteBuffer.allocate((int) size);
    while (all.hasRemaining() && in.read(all, all.position()) >= 0) {
      // One read may give less than is there.
    }
    if (all.hasRemaining()) {
      throw new IOException("the state that Firecracker wrote is cut off");
    }
    return all.array();
  }

  @Override
  public SocketChannel dial() {
    return Vsock.dial(
        parts.ground().socket(Ground.VSOCK), parts.ground().user(), Description.AGENT_PORT);
  }

  /// Who takes a connection is up and answers; but a connection that is made while a guest is about
  /// to learn of a resume may be lost on it, and up to 1.16 it may hang
  /// (<https://github.com/firecracker-microvm/firecracker/pull/6100>).
  @Override
  public Duration patience() {
    return PATIENCE;
  }

  @Override
  public VmStats stats() {
    ProcessIdentity.Memory memory = process.memory();
    return new VmStats(process.cpuMillis(), memory.resident(), memory.own());
  }

  @Override
  public void kill() {
    killed = true;
    parts.end().run();
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
    String text =
        PlainText.of(Processes.tail(parts.ground().file(Ground.CONSOLE)).replace("\0", ""));
    return text.length() > TAIL_CHARS_MAX ? text.substring(text.length() - TAIL_CHARS_MAX) : text;
  }

  // -- the end

  @Override
  public void forget() {
    forgotten = true;
    api.close();
  }

  /// The guest stands still for good and its process goes on: it is ended.
  void halted() {
    if (!killed && !ending.get()) {
      halted = true;
      parts.end().run();
    }
  }

  private void gone() {
    if (forgotten || !ending.compareAndSet(false, true)) {
      return;
    }
    phase = Phase.DEAD;
    // A connection that broke without its process is a process out of control.
    parts.end().run();
    boolean ended = process.awaitGone(GONE_DEADLINE);
    String log = Launcher.log(parts.ground());
    VmExit how =
        killed
            ? new VmExit(VmExit.Kind.KILLED, "the host ended it")
            : ExitCause.of(halted ? 0 : ExitCause.status(log), log, consoleTail());
    if (ended) {
      release();
    } else {
      // Its user id is given to nobody else as long as it is there.
      LOG.warn("Firecracker process {} of VM {} does not end", process.pid(), spec().id());
      Thread.ofVirtual().name("vm-lingers").start(this::releaseLate);
    }
    exit.complete(how);
  }

  private void releaseLate() {
    while (!process.awaitGone(GONE_DEADLINE)) {
      LOG.warn("Firecracker process {} of VM {} is still there", process.pid(), spec().id());
    }
    release();
  }

  private void release() {
    parts.release().run();
    try {
      if (Files.exists(parts.ground().home())) {
        parts.ground().clear();
      }
    } catch (IOException e) {
      LOG.warn("What VM {} left is not removed: {}", spec().id(), e.toString());
    }
  }
}
