package dev.space.vmm.simulated;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.FileEntry;
import dev.space.core.guest.GuestLink;
import dev.space.core.guest.GuestStats;
import dev.space.core.guest.ProcessInfo;
import dev.space.core.guest.ProcessSpec;
import dev.space.core.guest.WatchEvent;
import dev.space.core.guest.WriteFileSpec;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/// A link to a simulated guest: direct calls, which fail once it is closed or the VM is gone.
final class SimulatedLink implements GuestLink {

  private static final int WATCH_EVENTS_MAX = 4096;

  private final SimulatedVm vm;
  private final SimulatedGuest guest;
  private final CompletableFuture<Void> closed = new CompletableFuture<>();
  private final Map<String, BlockingQueue<WatchEvent>> named = new ConcurrentHashMap<>();
  private final AtomicLong marks = new AtomicLong();
  private volatile long generation;

  SimulatedLink(SimulatedVm vm, SimulatedGuest guest) {
    this.vm = vm;
    this.guest = guest;
  }

  boolean open() {
    return !closed.isDone();
  }

  /// @throws dev.space.core.error.SpaceException when the link can't be used any more
  void check() {
    if (guest.gone()) {
      throw Problem.of(ErrorCode.SANDBOX_DIED, "The guest is gone")
          .because(vm.exit().isDone() ? vm.exit().join().detail() : "its VM ended")
          .toException();
    }
    if (closed.isDone()) {
      throw Problem.of(ErrorCode.GUEST_UNREACHABLE, "The guest link was closed").toException();
    }
  }

  @Override
  public long generation() {
    return generation;
  }

  @Override
  public void adopt(long next, Adoption adoption, Duration deadline) {
    vm.host().fault(SimulatedHost.Step.ADOPT, vm.spec());
    guest.inside(
        this,
        deadline,
        () -> {
          guest.adopt(next, adoption);
          return true;
        });
    generation = next;
  }

  /// Waits for the guest's answer to a greeting.
  void hello(Duration deadline) {
    guest.inside(this, deadline, () -> true);
  }

  @Override
  public CompletableFuture<Void> closed() {
    return closed;
  }

  @Override
  public void close() {
    if (closed.complete(null)) {
      guest.nudge();
    }
  }

  @Override
  public ProcessInfo start(ProcessSpec spec) {
    return guest.inside(this, () -> guest.start(spec));
  }

  @Override
  public void output(String processId, long afterSeq, OutputSink sink) {
    guest.inside(this, () -> guest.process(processId)).read(afterSeq, sink, this);
  }

  @Override
  public long writeStdin(String processId, long offset, byte[] data, boolean eof) {
    return guest.inside(this, () -> guest.process(processId)).write(offset, data, eof, this);
  }

  @Override
  public void signal(String processId, int signal, SignalScope scope) {
    run(() -> guest.process(processId).signal(signal));
  }

  @Override
  public void resize(String processId, ProcessSpec.PtySize size) {
    run(() -> guest.process(processId).resize(size));
  }

  @Override
  public List<ProcessInfo> processes() {
    return guest.inside(
        this, () -> guest.processes().stream().map(process -> process.info(true)).toList());
  }

  @Override
  public void release(String processId) {
    run(() -> guest.release(processId));
  }

  @Override
  public FileEntry stat(String path, Optional<String> user) {
    return guest.inside(this, () -> guest.files().stat(path(path, user)));
  }

  @Override
  public void listDir(
      String path, Optional<String> user, int depth, boolean xattrs, EntrySink sink) {
    guest.inside(this, () -> guest.files().list(path(path, user), depth)).forEach(sink::accept);
  }

  @Override
  public FileEntry makeDir(
      String path, Optional<String> user, Optional<Integer> mode, boolean parents) {
    return guest.inside(
        this, () -> guest.files().makeDir(path(path, user), mode.orElse(0755), parents, uid(user)));
  }

  @Override
  public FileEntry move(
      String source,
      String destination,
      Optional<String> user,
      boolean parents,
      boolean overwrite) {
    return guest.inside(
        this,
        () -> guest.files().move(path(source, user), path(destination, user), parents, overwrite));
  }

  @Override
  public long remove(String path, Optional<String> user, boolean recursive) {
    return guest.inside(this, () -> guest.files().remove(path(path, user), recursive));
  }

  @Override
  public FileReading readFile(
      String path, Optional<String> user, long offset, Optional<Long> length) {
    FileEntry entry = guest.inside(this, () -> guest.files().real(path(path, user)));
    byte[] data = guest.inside(this, () -> guest.files().read(path(path, user)));
    int from = (int) Math.min(offset, data.length);
    int count = (int) Math.min(length.orElse(Long.MAX_VALUE), data.length - from);
    InputStream body = new ByteArrayInputStream(data, from, count);
    return new FileReading() {
      @Override
      public FileEntry entry() {
        return entry;
      }

      @Override
      public InputStream body() {
        return body;
      }

      @Override
      public void close() {}
    };
  }

  @Override
  public FileEntry writeFile(WriteFileSpec spec, InputStream body) throws IOException {
    byte[] data = body.readNBytes((int) SimulatedFiles.BYTES_MAX + 1);
    return guest.inside(
        this,
        () -> guest.files().write(spec, path(spec.path(), spec.user()), data, uid(spec.user())));
  }

  @Override
  public InputStream readTree(String path, Optional<String> user) {
    return new ByteArrayInputStream(
        guest.inside(this, () -> SimulatedTrees.pack(guest.files(), path(path, user))));
  }

  @Override
  public TreeWritten writeTree(
      String path, Optional<String> user, boolean keepOwners, InputStream tar) throws IOException {
    byte[] data = tar.readNBytes((int) SimulatedFiles.BYTES_MAX + 1);
    return guest.inside(
        this,
        () -> SimulatedTrees.unpack(guest.files(), path(path, user), uid(user), keepOwners, data));
  }

  @Override
  public void watch(WatchSpec spec, WatchSink sink) {
    String root = path(spec.path(), spec.user());
    String prefix = root.equals("/") ? "/" : root + "/";
    BlockingQueue<WatchEvent> events = new ArrayBlockingQueue<>(WATCH_EVENTS_MAX);
    SimulatedFiles.Watcher watcher =
        (path, kind) -> {
          if (!path.startsWith(prefix)
              || !spec.recursive() && path.indexOf('/', prefix.length()) >= 0) {
            return;
          }
          Optional<FileEntry> entry =
              spec.entries() ? guest.files().statIfThere(path) : Optional.empty();
          String name = path.substring(prefix.length());
          if (!events.offer(new WatchEvent(kind, name, entry, guest.clockMillis()))) {
            events.clear();
            events.add(
                new WatchEvent(
                    WatchEvent.Kind.OVERFLOW, "", Optional.empty(), guest.clockMillis()));
          }
        };
    run(() -> guest.files().watch(watcher));
    spec.id().ifPresent(id -> named.put(id, events));
    CompletableFuture<Void> ended = closed.thenRun(() -> {});
    try {
      sink.accept(new WatchEvent(WatchEvent.Kind.ARMED, "", Optional.empty(), guest.clockMillis()));
      while (!ended.isDone()) {
        WatchEvent event = events.poll(100, TimeUnit.MILLISECONDS);
        check();
        if (event != null) {
          sink.accept(event);
        }
      }
      check();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw Problem.of(ErrorCode.CANCELLED, "The watch was cancelled").toException(e);
    } finally {
      guest.files().unwatch(watcher);
      spec.id().ifPresent(id -> named.remove(id, events));
    }
  }

  @Override
  public long markWatch(String id) {
    check();
    BlockingQueue<WatchEvent> events = named.get(id);
    if (events == null) {
      throw Problem.of(ErrorCode.NOT_FOUND, "No watch '" + id + "' is open").toException();
    }
    long mark = marks.incrementAndGet();
    var event =
        new WatchEvent(WatchEvent.Kind.MARK, "", Optional.empty(), guest.clockMillis(), mark);
    if (!events.offer(event)) {
      events.clear();
      events.add(event);
    }
    return mark;
  }

  @Override
  public Tunnel connect(int port) {
    SimulatedGuest.Port listener =
        guest
            .inside(this, () -> guest.port(port))
            .orElseThrow(
                () ->
                    Problem.of(ErrorCode.PORT_CLOSED, "Nothing listens on port " + port)
                        .remedy("Start a server on that port in the sandbox.")
                        .toException());
    return new SimulatedTunnel(listener.answer());
  }

  @Override
  public GuestStats stats() {
    return guest.inside(
        this,
        () ->
            new GuestStats(
                vm.spec().resources().vcpus(),
                guest.upMillis() / 100,
                guest.upMillis() * vm.spec().resources().vcpus(),
                (long) vm.spec().resources().memoryMib() << 20,
                guest.files().bytes(),
                0,
                (long) vm.spec().resources().diskMib() << 20,
                guest.files().bytes(),
                guest.processes().size()));
  }

  @Override
  public void sync() {
    guest.inside(
        this,
        () -> {
          vm.write(new SimulatedVm.Synced(guest.files().save(), guest.files().nextInode()));
          return true;
        });
  }

  @Override
  public void shutdown(Duration grace) {
    run(guest::powerOff);
  }

  private void run(Runnable action) {
    guest.inside(
        this,
        () -> {
          action.run();
          return true;
        });
  }

  private int uid(Optional<String> user) {
    return guest.uid(user.orElse(""));
  }

  private String path(String path, Optional<String> user) {
    return SimulatedFiles.absolute(path, guest.home(uid(user)));
  }
}
