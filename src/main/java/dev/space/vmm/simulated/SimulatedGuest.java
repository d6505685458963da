package dev.space.vmm.simulated;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.Guest;
import dev.space.core.guest.ProcessInfo;
import dev.space.core.guest.ProcessSpec;
import dev.space.core.vm.VmExit;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.BiConsumer;
import java.util.function.LongSupplier;
import java.util.random.RandomGenerator;

/// The inside of a simulated VM. While it stands still nothing in it changes: calls wait, programs
/// take no step, its clocks don't move.
final class SimulatedGuest {

  /// Processes that a guest knows at a time, ended ones included.
  static final int PROCESSES_MAX = 20_000;

  private static final Duration FOR_EVER = Duration.ofDays(365);

  private final LongSupplier hostMillis;
  private final RandomGenerator hostRandom;
  private final BiConsumer<VmExit.Kind, String> onEnd;
  private final ReentrantReadWriteLock gate = new ReentrantReadWriteLock();
  private final Object state = new Object();
  private final SimulatedFiles files;
  private final Map<String, SimulatedProcess> processes = new LinkedHashMap<>();
  private final Map<Integer, Port> ports = new ConcurrentHashMap<>();
  private final String bootId;

  /// The guest's clocks: how long it was up when it last began to run, and what time it was then.
  private record Clocks(boolean running, long upBefore, long since, long base, long baseUp) {
    long up() {
      return running ? upBefore + (System.nanoTime() - since) / 1_000_000 : upBefore;
    }
  }

  // Locks are taken in this order: gate, a process, state, identity.
  private final Object identity = new Object();
  private volatile Clocks clocks;
  private volatile boolean gone;
  private String machineId;
  private String hostname;
  private SortedMap<String, String> env;
  private Optional<String> defaultUser;
  private Optional<String> defaultWorkdir;
  private long generation;
  private long random;
  private int nextPid;

  /// Who listens on a port, and what it answers; empty means it echoes.
  record Port(Shell owner, Optional<String> answer) {}

  /// A guest that boots.
  SimulatedGuest(
      LongSupplier hostMillis, RandomGenerator hostRandom, BiConsumer<VmExit.Kind, String> onEnd) {
    this.hostMillis = hostMillis;
    this.hostRandom = hostRandom;
    this.onEnd = onEnd;
    this.bootId = Long.toHexString(hostRandom.nextLong());
    this.machineId = "booted";
    this.hostname = "localhost";
    this.env = new TreeMap<>();
    this.defaultUser = Optional.empty();
    this.defaultWorkdir = Optional.empty();
    this.random = 1;
    this.nextPid = 100;
    this.clocks = new Clocks(false, 0, 0, hostMillis.getAsLong(), 0);
    this.files = new SimulatedFiles(this::clockMillis);
  }

  /// A guest as it was saved, standing still.
  SimulatedGuest(
      GuestImage image,
      LongSupplier hostMillis,
      RandomGenerator hostRandom,
      BiConsumer<VmExit.Kind, String> onEnd) {
    this.hostMillis = hostMillis;
    this.hostRandom = hostRandom;
    this.onEnd = onEnd;
    this.bootId = image.bootId();
    this.machineId = image.machineId();
    this.hostname = image.hostname();
    this.env = image.env();
    this.defaultUser = image.defaultUser();
    this.defaultWorkdir = image.defaultWorkdir();
    this.generation = image.generation();
    this.random = image.random();
    this.nextPid = image.nextPid();
    this.clocks = new Clocks(false, image.upMillis(), 0, image.clockMillis(), image.upMillis());
    this.files = new SimulatedFiles(this::clockMillis, image.files(), image.nextInode());
    for (GuestImage.SavedProcess saved : image.processes()) {
      SimulatedProcess process =
          new SimulatedProcess(this, saved, uid(saved.spec().user().orElse("")));
      processes.put(saved.spec().id(), process);
      if (!process.over()) {
        process.begin();
      }
    }
  }

  GuestImage save() {
    List<GuestImage.SavedProcess> saved = processes().stream().map(SimulatedProcess::save).toList();
    synchronized (identity) {
      return new GuestImage(
          bootId,
          machineId,
          hostname,
          env,
          defaultUser,
          defaultWorkdir,
          generation,
          random,
          clockMillis(),
          upMillis(),
          nextPid,
          files.nextInode(),
          files.save(),
          saved);
    }
  }

  // -- standing still

  void resume() {
    synchronized (state) {
      Clocks now = clocks;
      if (now.running() || gone) {
        return;
      }
      clocks = new Clocks(true, now.upBefore(), System.nanoTime(), now.base(), now.baseUp());
      state.notifyAll();
    }
    nudge();
  }

  void pause() {
    gate.writeLock().lock();
    try {
      synchronized (state) {
        Clocks now = clocks;
        if (!now.running()) {
          return;
        }
        clocks = new Clocks(false, now.up(), 0, now.base(), now.baseUp());
      }
    } finally {
      gate.writeLock().unlock();
    }
    nudge();
  }

  void end() {
    synchronized (state) {
      gone = true;
      Clocks now = clocks;
      clocks = new Clocks(false, now.up(), 0, now.base(), now.baseUp());
      state.notifyAll();
    }
    nudge();
  }

  boolean running() {
    return clocks.running();
  }

  boolean gone() {
    return gone;
  }

  /// Wakes all who wait; and as it takes the lock of each process, no step is under way afterwards.
  void nudge() {
    List<SimulatedProcess> all;
    synchronized (state) {
      all = List.copyOf(processes.values());
      state.notifyAll();
    }
    all.forEach(SimulatedProcess::nudge);
  }

  /// Does something inside the guest, as soon as it runs.
  <T> T inside(SimulatedLink link, java.util.function.Supplier<T> action) {
    return inside(link, FOR_EVER, action);
  }

  /// The same with a deadline, after which it is GUEST_UNREACHABLE.
  <T> T inside(SimulatedLink link, Duration deadline, java.util.function.Supplier<T> action) {
    long end = System.nanoTime() + deadline.toNanos();
    while (true) {
      link.check();
      gate.readLock().lock();
      try {
        if (running()) {
          return action.get();
        }
      } finally {
        gate.readLock().unlock();
      }
      if (!awaitRunning(link, end)) {
        throw Problem.of(
                ErrorCode.GUEST_UNREACHABLE,
                "The guest's agent did not answer within " + deadline.toMillis() + " ms.")
            .toException();
      }
    }
  }

  /// @return false when it still stands at the end of the time
  private boolean awaitRunning(SimulatedLink link, long end) {
    synchronized (state) {
      while (!running() && !gone && link.open()) {
        long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
        if (left <= 0) {
          return false;
        }
        try {
          state.wait(left);
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          throw Problem.of(ErrorCode.CANCELLED, "The call to the guest was cancelled")
              .toException(e);
        }
      }
      return true;
    }
  }

  // -- clocks and identity

  long upMillis() {
    return clocks.up();
  }

  long clockMillis() {
    Clocks now = clocks;
    return now.base() + now.up() - now.baseUp();
  }

  void adopt(long next, Guest.Adoption adoption) {
    synchronized (identity) {
      if (next <= generation) {
        throw Problem.of(ErrorCode.CONFLICT, "The guest has been adopted since")
            .because("generation " + next + " is not larger than " + generation)
            .toException();
      }
      generation = next;
      hostname = adoption.hostname();
      env = new TreeMap<>(adoption.env());
      defaultUser = adoption.defaultUser();
      defaultWorkdir = adoption.defaultWorkdir();
      if (adoption.newIdentity()) {
        machineId = Long.toHexString(hostRandom.nextLong());
        random ^= hostRandom.nextLong();
      }
    }
    synchronized (state) {
      Clocks now = clocks;
      clocks =
          new Clocks(now.running(), now.upBefore(), now.since(), hostMillis.getAsLong(), now.up());
    }
  }

  String hostname() {
    synchronized (identity) {
      return hostname;
    }
  }

  String machineId() {
    synchronized (identity) {
      return machineId;
    }
  }

  long nextRandom() {
    synchronized (identity) {
      random = random * 6364136223846793005L + 1442695040888963407L;
      return random;
    }
  }

  SimulatedFiles files() {
    return files;
  }

  int uid(String user) {
    String name = user.isEmpty() ? defaultUser() : user;
    return switch (name) {
      case "root", "0", "" -> 0;
      case "user", "1000" -> 1000;
      default ->
          throw Problem.of(ErrorCode.USER_NOT_FOUND, "The sandbox has no user '" + name + "'")
              .toException();
    };
  }

  private String defaultUser() {
    synchronized (identity) {
      return defaultUser.orElse("root");
    }
  }

  String home(int uid) {
    return uid == 0 ? "/root" : "/home/user";
  }

  // -- processes

  ProcessInfo start(ProcessSpec spec) {
    SimulatedProcess process;
    SimulatedProcess known;
    synchronized (state) {
      known = processes.get(spec.id());
    }
    if (known != null) {
      return known.info(true);
    }
    synchronized (state) {
      if (processes.size() >= PROCESSES_MAX) {
        throw Problem.of(
                ErrorCode.TOO_MANY_REQUESTS,
                "The guest already knows " + PROCESSES_MAX + " processes")
            .toException();
      }
      process = make(spec);
      known = processes.putIfAbsent(spec.id(), process);
    }
    if (known != null) {
      return known.info(true);
    }
    process.begin();
    return process.info(false);
  }

  private SimulatedProcess make(ProcessSpec spec) {
    if (spec.argv().isEmpty()) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "The command is empty").toException();
    }
    int uid = uid(spec.user().orElse(""));
    String cwd =
        SimulatedFiles.absolute(spec.cwd().or(() -> defaultWorkdir).orElse("~"), home(uid));
    if (!files.isDirectory(cwd)) {
      throw Problem.of(ErrorCode.WORKDIR_NOT_FOUND, "The directory " + cwd + " doesn't exist")
          .toException();
    }
    Map<String, String> vars = new HashMap<>();
    vars.put("PATH", "/usr/local/bin:/usr/bin:/bin");
    vars.put("HOME", home(uid));
    vars.put("USER", uid == 0 ? "root" : "user");
    vars.putAll(env);
    vars.putAll(spec.env());
    Shell shell =
        Shell.start(spec.argv(), cwd, vars)
            .orElseThrow(
                () ->
                    Problem.of(
                            ErrorCode.COMMAND_NOT_FOUND,
                            "The sandbox has no command '" + spec.argv().getFirst() + "'")
                        .toException());
    return new SimulatedProcess(this, spec, nextPid++, uid, shell);
  }

  SimulatedProcess process(String id) {
    synchronized (state) {
      SimulatedProcess process = processes.get(id);
      if (process == null) {
        throw Problem.of(ErrorCode.NOT_FOUND, "The guest has no process '" + id + "'")
            .toException();
      }
      return process;
    }
  }

  List<SimulatedProcess> processes() {
    synchronized (state) {
      return List.copyOf(processes.values());
    }
  }

  void release(String id) {
    SimulatedProcess process;
    synchronized (state) {
      process = processes.get(id);
    }
    if (process == null) {
      return;
    }
    if (!process.over()) {
      throw Problem.of(ErrorCode.ILLEGAL_STATE, "Process '" + id + "' still runs").toException();
    }
    synchronized (state) {
      processes.remove(id, process);
    }
  }

  void ended(Shell shell) {
    ports.values().removeIf(port -> port.owner() == shell);
  }

  void listen(int port, Port owner) {
    ports.put(port, owner);
  }

  Optional<Port> port(int port) {
    return Optional.ofNullable(ports.get(port));
  }

  /// The kernel panics, as soon as the step at hand is over.
  void panic() {
    Thread.ofVirtual().start(() -> onEnd.accept(VmExit.Kind.PANICKED, "Kernel panic: crash"));
  }

  /// The guest powers off, as soon as the step at hand is over.
  void powerOff() {
    Thread.ofVirtual().start(() -> onEnd.accept(VmExit.Kind.STOPPED, "The guest powered off"));
  }
}
