package dev.space.vmm.qemu;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.vm.Vm.MemoryTarget;
import dev.space.core.vm.VmSpec;
import dev.space.host.DiskFull;
import dev.space.host.ProcessIdentity;
import dev.space.host.SparseFile;
import dev.space.vmm.memory.ChangeFile;
import dev.space.vmm.memory.ProcessMemory;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Saves and loads the state of one QEMU process. Why it is done this way, and what else was
/// measured: docs/decisions.md, "Suspending a clone".
final class StateTransfer {

  private static final Logger LOG = LoggerFactory.getLogger(StateTransfer.class);

  private static final Duration DEADLINE = Duration.ofMinutes(5);

  /// Device state without memory is some 200 KB; with memory it is bounded by that.
  private static final long DEVICE_BYTES_MAX = 64L << 20;

  private final VmSpec spec;
  private final ProcessIdentity process;
  private final Qmp qmp;
  private final Optional<Path> image;
  private final Optional<Integer> user;
  private final Events events;
  private final boolean mayTrace;

  /// @param image memory that the process maps privately; empty when it has a file of its own
  /// @param mayTrace whether the process's memory may be looked at, if the kernel lets us
  /// @param user whom the process runs as, when that isn't who the daemon runs as
  StateTransfer(
      VmSpec spec,
      ProcessIdentity process,
      Qmp qmp,
      Optional<Path> image,
      Optional<Integer> user,
      Events events,
      boolean mayTrace) {
    this.mayTrace = mayTrace;
    this.spec = spec;
    this.process = process;
    this.qmp = qmp;
    this.image = image;
    this.user = user;
    this.events = events;
  }

  private long memoryBytes() {
    return (long) spec.resources().memoryMib() << 20;
  }

  // -- saving

  void save(Path state, MemoryTarget target) {
    requirePaused();
    try {
      switch (target) {
        case MemoryTarget.Full(Path file) -> {
          saveDevices(state);
          saveFull(file);
        }
        case MemoryTarget.Changes(Path file) -> {
          if (!saveChanges(file)) {
            saveStream(state);
            ChangeFile.writeInState(file, memoryBytes());
          } else {
            saveDevices(state);
          }
        }
      }
    } catch (IOException e) {
      throw Problem.of(
              DiskFull.isSaidBy(e) ? ErrorCode.DISK_FULL : ErrorCode.VMM_FAILED,
              "A VM's state could not be saved.")
          .because(String.valueOf(e.getMessage()))
          .toException(e);
    }
  }

  private void requirePaused() {
    if (qmp.execute("query-status", QemuVm.COMMAND_DEADLINE).path("running").asBoolean(true)) {
      throw Problem.of(ErrorCode.VMM_FAILED, "Only a paused VM can be saved.").toException();
    }
  }

  /// The file is made and opened here and only then named to QEMU, in a directory where it can
  /// replace nothing: a guest that broke out into the process can't lay a link or a FIFO here.
  private void saveDevices(Path state) throws IOException {
    Path written = spec.directory().resolve(CommandLine.SAVED_STATE);
    Files.deleteIfExists(written);
    try (FileChannel in =
        FileChannel.open(
            written,
            StandardOpenOption.CREATE_NEW,
            StandardOpenOption.READ,
            StandardOpenOption.WRITE)) {
      handOver(written);
      qmp.execute(
          "xen-save-devices-state",
          Map.of("filename", CommandLine.SAVED_STATE, "live", false),
          DEADLINE);
      copy(in, state, DEVICE_BYTES_MAX);
    } finally {
      Files.deleteIfExists(written);
    }
  }

  private void handOver(Path file) throws IOException {
    if (user.isPresent()) {
      Files.setAttribute(file, "unix:uid", user.get());
    }
  }

  private void saveFull(Path file) throws IOException {
    if (image.isPresent()) {
      ProcessMemory memory = memory(image.get());
      SparseFile.copy(image.get(), file);
      memory.copyTo(file);
      return;
    }
    Path own = spec.directory().resolve(CommandLine.MEMORY);
    if (!file.toAbsolutePath().equals(own.toAbsolutePath())) {
      SparseFile.copy(own, file);
    }
    force(file);
  }

  /// @return false when this process's memory may not be looked at
  private boolean saveChanges(Path file) throws IOException {
    if (image.isEmpty()) {
      Path own = spec.directory().resolve(CommandLine.MEMORY);
      try (FileChannel in = FileChannel.open(own, StandardOpenOption.READ)) {
        ChangeFile.writeAll(file, memoryBytes(), in);
      }
      return true;
    }
    ProcessMemory memory;
    try {
      memory = memory(image.get());
      memory.requireAccess();
    } catch (IOException e) {
      LOG.info("Memory of VM {} is saved as a whole: {}", spec.id(), e.getMessage());
      return false;
    }
    if (isOwn(image.get())) {
      memory.saveAll(file);
    } else {
      memory.save(file);
    }
    return true;
  }

  /// Whether a process maps a memory that was put together for it alone, because the changes could
  /// not be put into the process: what it changed since says nothing about the image that the
  /// caller knows.
  private boolean isOwn(Path mapped) {
    return mapped
        .toAbsolutePath()
        .equals(spec.directory().resolve(CommandLine.MEMORY).toAbsolutePath());
  }

  private ProcessMemory memory(Path mapped) throws IOException {
    if (!mayTrace) {
      throw new IOException("processes may not be looked into");
    }
    return ProcessMemory.find(process.pid(), mapped, memoryBytes());
  }

  /// Devices and memory as one stream.
  private void saveStream(Path state) throws IOException {
    Path socket = Launcher.socket(spec.directory(), CommandLine.OUTGOING_SOCKET);
    Files.deleteIfExists(socket);
    try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      server.bind(UnixDomainSocketAddress.of(socket));
      handOver(socket);
      CompletableFuture<Boolean> done = watchMigration();
      qmp.execute(
          "migrate-set-parameters", Map.of("max-bandwidth", 1L << 40), QemuVm.COMMAND_DEADLINE);
      qmp.execute(
          "migrate", Map.of("uri", "unix:" + CommandLine.OUTGOING_SOCKET), QemuVm.COMMAND_DEADLINE);
      try (SocketChannel in = server.accept()) {
        copy(in, state, memoryBytes() * 2 + DEVICE_BYTES_MAX);
      }
      if (!await(done)) {
        throw new IOException(
            qmp.closed().isDone()
                ? "QEMU ended; it said: " + Launcher.log(spec.directory())
                : "QEMU reported that its state could not be saved");
      }
    } finally {
      Files.deleteIfExists(socket);
    }
  }

  private static void copy(ReadableByteChannel in, Path to, long bytesMax) throws IOException {
    ByteBuffer buffer = ByteBuffer.allocateDirect(256 * 1024);
    long total = 0;
    try (FileChannel out =
        FileChannel.open(
            to,
            StandardOpenOption.CREATE,
            StandardOpenOption.WRITE,
            StandardOpenOption.TRUNCATE_EXISTING)) {
      while (in.read(buffer) >= 0) {
        buffer.flip();
        total += buffer.remaining();
        if (total > bytesMax) {
          throw new IOException("the state is larger than " + bytesMax + " bytes");
        }
        while (buffer.hasRemaining()) {
          out.write(buffer);
        }
        buffer.clear();
      }
      out.force(true);
    }
  }

  private static void force(Path file) throws IOException {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
      channel.force(true);
    }
  }

  // -- loading

  /// Puts changed pages into a process that waits for its device state.
  ///
  /// @return false when this process's memory may not be written to
  boolean loadChanges(Path memory, Path changes) {
    try {
      if (ChangeFile.isInState(changes)) {
        return true;
      }
      memory(memory).load(changes);
      return true;
    } catch (IOException e) {
      LOG.info("Changed pages of VM {} are not put in place: {}", spec.id(), e.getMessage());
      return false;
    }
  }

  /// Streams device state into a process that waits for it, which is paused afterwards.
  ///
  /// @throws dev.space.core.error.SpaceException SNAPSHOT_DAMAGED when QEMU refuses it
  void load(Path state) {
    CompletableFuture<Boolean> done = watchMigration();
    Path socket = Launcher.socket(spec.directory(), CommandLine.INCOMING_SOCKET);
    try (FileChannel in = FileChannel.open(state, StandardOpenOption.READ);
        SocketChannel out = SocketChannel.open(UnixDomainSocketAddress.of(socket))) {
      long at = 0;
      long size = in.size();
      while (at < size) {
        at += in.transferTo(at, size - at, out);
      }
      out.shutdownOutput();
      if (!await(done)) {
        throw refused("it says that it failed");
      }
    } catch (IOException e) {
      throw refused(String.valueOf(e.getMessage()));
    } finally {
      socket.toFile().delete();
    }
  }

  private SpaceException refused(String why) {
    String log = Launcher.log(spec.directory());
    return Problem.of(ErrorCode.SNAPSHOT_DAMAGED, "QEMU could not load the saved state.")
        .because(log.isEmpty() ? why : log)
        .toException();
  }

  private CompletableFuture<Boolean> watchMigration() {
    qmp.execute(
        "migrate-set-capabilities",
        Map.of("capabilities", List.of(Map.of("capability", "events", "state", true))),
        QemuVm.COMMAND_DEADLINE);
    CompletableFuture<Boolean> done = events.nextMigration();
    qmp.closed().thenRun(() -> done.complete(false));
    return done;
  }

  private static boolean await(CompletableFuture<Boolean> done) throws IOException {
    try {
      return done.get(DEADLINE.toMillis(), TimeUnit.MILLISECONDS);
    } catch (TimeoutException | ExecutionException e) {
      throw new IOException("QEMU did not come to an end with its state", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw Problem.of(ErrorCode.CANCELLED, "The transfer of a VM's state was given up.")
          .toException(e);
    }
  }
}
