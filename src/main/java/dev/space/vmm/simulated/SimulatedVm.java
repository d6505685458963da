package dev.space.vmm.simulated;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.vm.MemoryImage;
import dev.space.core.vm.Vm;
import dev.space.core.vm.VmExit;
import dev.space.core.vm.VmIdentity;
import dev.space.core.vm.VmSpec;
import dev.space.core.vm.VmStats;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Optional;
import java.util.SortedMap;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/// A simulated VM process. The guest's files are in its memory; on its disk is one number, which
/// changes whenever the guest starts to run, and which a state remembers, and the files as they
/// were when the guest last synced, with which it boots.
final class SimulatedVm implements Vm {

  /// What a guest without files is said to take.
  private static final long GUEST_BYTES = 1 << 20;

  /// Device state.
  ///
  /// @param memory fingerprint of the memory it belongs to
  /// @param disk the number on the disk it belongs to
  record State(String format, String shape, String memory, long disk) {}

  /// What a guest has synced.
  record Synced(SortedMap<String, GuestImage.SavedFile> files, long nextInode) {}

  /// Makes a VM once it has an identity.
  @FunctionalInterface
  interface Maker {
    SimulatedVm make(VmIdentity identity);
  }

  private final SimulatedHost host;
  private final VmSpec spec;
  private final VmIdentity identity;
  private final SimulatedGuest guest;
  private final Optional<GuestImage> base;
  private final CompletableFuture<VmExit> exit = new CompletableFuture<>();
  private @Nullable SimulatedLink link;
  private long diskNumber;

  private SimulatedVm(
      SimulatedHost host,
      VmSpec spec,
      VmIdentity identity,
      Optional<GuestImage> memory,
      Optional<GuestImage> base,
      long diskNumber) {
    this.host = host;
    this.spec = spec;
    this.identity = identity;
    this.base = base;
    this.diskNumber = diskNumber;
    this.guest =
        memory
            .map(m -> new SimulatedGuest(m, host::millis, host.random(), this::end))
            .orElseGet(() -> new SimulatedGuest(host::millis, host.random(), this::end));
  }

  static SimulatedVm boot(SimulatedHost host, VmSpec spec, VmIdentity identity) {
    SimulatedVm vm = new SimulatedVm(host, spec, identity, Optional.empty(), Optional.empty(), 0);
    vm.synced().ifPresent(disk -> vm.guest.files().replace(disk.files(), disk.nextInode()));
    return vm;
  }

  static SimulatedVm restore(
      SimulatedHost host,
      VmSpec spec,
      VmIdentity identity,
      GuestImage memory,
      GuestImage base,
      MemoryImage image,
      State state) {
    SimulatedVm vm =
        new SimulatedVm(host, spec, identity, Optional.of(memory), Optional.of(base), state.disk());
    long there = vm.disk(Optional.empty());
    if (there != state.disk()) {
      vm.guest.end();
      throw SimulatedVmm.failure(
          "The disk is not as it was when " + image.state().getFileName() + " was saved");
    }
    return vm;
  }

  SimulatedHost host() {
    return host;
  }

  SimulatedLink open() {
    synchronized (this) {
      if (link != null) {
        link.close();
      }
      link = new SimulatedLink(this, guest);
      return link;
    }
  }

  void breakLink() {
    synchronized (this) {
      if (link != null) {
        link.close();
      }
    }
  }

  void end(VmExit.Kind kind, String detail) {
    VmExit how = new VmExit(kind, detail);
    synchronized (exit) {
      if (exit.isDone()) {
        return;
      }
      host.ended(this);
      guest.end();
    }
    exit.complete(how);
    breakLink();
  }

  @Override
  public VmSpec spec() {
    return spec;
  }

  @Override
  public VmIdentity identity() {
    return identity;
  }

  @Override
  public void pause() {
    alive();
    host.fault(SimulatedHost.Step.PAUSE, spec);
    guest.pause();
  }

  @Override
  public void resume() {
    alive();
    host.fault(SimulatedHost.Step.RESUME, spec);
    if (!guest.running()) {
      diskNumber = host.random().nextLong();
      disk(Optional.of(diskNumber));
      guest.resume();
    }
  }

  @Override
  public void save(Path state, MemoryTarget memory) {
    alive();
    if (guest.running()) {
      throw Problem.of(ErrorCode.VMM_FAILED, "A running VM can't be saved").toException();
    }
    host.fault(SimulatedHost.Step.SAVE, spec);
    GuestImage image = guest.save();
    byte[] whole = image.bytes();
    switch (memory) {
      case MemoryTarget.Full(Path file) -> SimulatedVmm.write(file, whole);
      case MemoryTarget.Changes(Path file) ->
          SimulatedVmm.write(
              file,
              GuestImage.write(
                  image.since(
                      base.orElseThrow(
                          () -> SimulatedVmm.failure("A booted VM has no image to differ from")))));
    }
    SimulatedVmm.write(
        state,
        GuestImage.write(
            new State(
                SimulatedVmm.FORMAT,
                spec.resources().shape(),
                GuestImage.fingerprint(whole),
                diskNumber)));
    alive();
  }

  @Override
  public SocketChannel dial() {
    throw Problem.of(ErrorCode.NOT_SUPPORTED, "A simulated VM has no byte stream to its agent")
        .remedy("Use the connector of its host.")
        .toException();
  }

  @Override
  public VmStats stats() {
    alive();
    long bytes = GUEST_BYTES + guest.files().bytes();
    return new VmStats(guest.upMillis() / 100, bytes, bytes);
  }

  @Override
  public void kill() {
    end(VmExit.Kind.KILLED, "killed by the host");
  }

  @Override
  public CompletableFuture<VmExit> exit() {
    return exit.copy();
  }

  @Override
  public String consoleTail() {
    return exit.isDone() ? exit.join().detail() : "";
  }

  private void alive() {
    if (exit.isDone()) {
      throw Problem.of(ErrorCode.SANDBOX_DIED, "The VM is gone")
          .because(exit.join().detail())
          .toException();
    }
  }

  /// Writes what the guest has synced.
  void write(Synced files) {
    byte[] bytes = GuestImage.write(files);
    ByteBuffer buffer = ByteBuffer.allocate(Integer.BYTES + bytes.length);
    try (FileChannel channel = FileChannel.open(spec.disk(), StandardOpenOption.WRITE)) {
      channel.write(buffer.putInt(bytes.length).put(bytes).flip(), Long.BYTES);
    } catch (IOException e) {
      throw unusable(e);
    }
  }

  private Optional<Synced> synced() {
    try (FileChannel channel = FileChannel.open(spec.disk(), StandardOpenOption.READ)) {
      ByteBuffer head = ByteBuffer.allocate(SimulatedDisks.HEAD_BYTES);
      if (channel.read(head, 0) < head.capacity() || head.getInt(Long.BYTES) == 0) {
        return Optional.empty();
      }
      ByteBuffer bytes = ByteBuffer.allocate(head.getInt(Long.BYTES));
      channel.read(bytes, SimulatedDisks.HEAD_BYTES);
      return Optional.of(GuestImage.parse(bytes.array(), Synced.class));
    } catch (IOException e) {
      throw unusable(e);
    }
  }

  private SpaceException unusable(IOException e) {
    return Problem.of(ErrorCode.VMM_FAILED, "The disk " + spec.disk() + " can't be used")
        .because(e.toString())
        .toException(e);
  }

  /// Reads the number on the disk, or writes it.
  private long disk(Optional<Long> number) {
    ByteBuffer buffer = ByteBuffer.allocate(Long.BYTES);
    try (FileChannel channel =
        FileChannel.open(spec.disk(), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      if (number.isPresent()) {
        channel.write(buffer.putLong(0, number.get()), 0);
        return number.get();
      }
      return channel.read(buffer, 0) < Long.BYTES ? 0 : buffer.getLong(0);
    } catch (IOException e) {
      throw unusable(e);
    }
  }
}
