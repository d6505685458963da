package dev.space.core.session;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.FileEntry;
import dev.space.core.guest.Guest;
import dev.space.core.guest.GuestStats;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.OutputEvent.Stream;
import dev.space.core.guest.ProcessExit;
import dev.space.core.guest.ProcessInfo;
import dev.space.core.guest.ProcessSpec;
import dev.space.core.guest.WriteFileSpec;
import java.io.ByteArrayOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// A guest whose processes do what the test says. Its link can be cut; its processes go on then.
public final class ScriptedGuest implements Guest {

  private static final int PID = 42;

  /// One process.
  public final class Process {
    public final ProcessSpec spec;
    final List<OutputEvent> events = new ArrayList<>();
    public final ByteArrayOutputStream stdin = new ByteArrayOutputStream();
    public volatile boolean eof;
    public final List<Integer> signals = new ArrayList<>();
    public volatile ProcessSpec.@org.jspecify.annotations.Nullable PtySize size;
    boolean released;

    Process(ProcessSpec spec) {
      this.spec = spec;
      events.add(new OutputEvent.Started(1, 1, PID));
    }

    public void write(Stream stream, byte[] data) {
      add(new OutputEvent.Bytes(events.size() + 1, 2, stream, data));
    }

    public void write(String text) {
      write(
          spec.pty().isPresent() ? Stream.PTY : Stream.STDOUT,
          text.getBytes(java.nio.charset.StandardCharsets.UTF_8));
    }

    public void exit(int code) {
      add(new OutputEvent.Exited(events.size() + 1, 3, new ProcessExit(code, 0, false, false)));
    }

    void killed(int signal) {
      add(new OutputEvent.Exited(events.size() + 1, 3, new ProcessExit(-1, signal, false, false)));
    }

    private void add(OutputEvent event) {
      synchronized (ScriptedGuest.this) {
        events.add(event);
        ScriptedGuest.this.notifyAll();
      }
    }

    private boolean ended() {
      return events.getLast() instanceof OutputEvent.Exited;
    }
  }

  private final Map<String, Process> processes = new HashMap<>();
  public final Set<String> commands = new HashSet<>(Set.of("/bin/bash", "/bin/sh", "cat", "run"));
  private volatile int link;
  public volatile int starts;

  /// What the next starts are refused with.
  public final java.util.Queue<ErrorCode> refusals =
      new java.util.concurrent.ConcurrentLinkedQueue<>();

  /// The process of a session, as soon as it was started.
  public Process process(String id) {
    synchronized (this) {
      Process process = processes.get(id);
      if (process == null) {
        throw Problem.of(ErrorCode.NOT_FOUND, "no process " + id).toException();
      }
      return process;
    }
  }

  public boolean has(String id) {
    synchronized (this) {
      return processes.containsKey(id);
    }
  }

  public boolean released(String id) {
    return process(id).released;
  }

  /// Calls in flight fail; a new link is there at once.
  public void cutLink() {
    synchronized (this) {
      link++;
      notifyAll();
    }
  }

  /// Forgets everything, as a guest that booted again does.
  public void forget() {
    synchronized (this) {
      processes.clear();
      cutLink();
    }
  }

  @Override
  public synchronized ProcessInfo start(ProcessSpec spec) {
    ErrorCode refusal = refusals.poll();
    if (refusal != null) {
      throw Problem.of(refusal, "not now").toException();
    }
    if (!commands.contains(spec.argv().getFirst())) {
      throw Problem.of(ErrorCode.COMMAND_NOT_FOUND, "There is no " + spec.argv().getFirst())
          .toException();
    }
    boolean existed = processes.containsKey(spec.id());
    if (!existed) {
      starts++;
    }
    Process process = processes.computeIfAbsent(spec.id(), _ -> new Process(spec));
    return new ProcessInfo(
        spec.id(),
        PID,
        Optional.empty(),
        spec.argv(),
        spec.env(),
        "/",
        "user",
        spec.tag(),
        spec.pty().isPresent(),
        Instant.ofEpochMilli(1),
        process.events.size(),
        process.stdin.size(),
        existed);
  }

  @Override
  public void output(String processId, long afterSeq, OutputSink sink) {
    Process process = process(processId);
    int mine = link;
    long next = afterSeq;
    while (true) {
      OutputEvent event;
      synchronized (this) {
        while (process.events.size() <= next && link == mine) {
          try {
            wait();
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw unreachable();
          }
        }
        if (link != mine) {
          throw unreachable();
        }
        event = process.events.get((int) next);
      }
      sink.accept(event);
      next = event.seq();
      if (event instanceof OutputEvent.Exited) {
        return;
      }
    }
  }

  private static SpaceException unreachable() {
    return Problem.of(ErrorCode.GUEST_UNREACHABLE, "The link is gone.").toException();
  }

  @Override
  public synchronized long writeStdin(String processId, long offset, byte[] data, boolean eof) {
    Process process = process(processId);
    int have = process.stdin.size();
    if (offset > have) {
      throw Problem.of(ErrorCode.OFFSET_MISMATCH, "The next byte is " + have + ".").toException();
    }
    int known = (int) Math.min(data.length, have - offset);
    process.stdin.write(data, known, data.length - known);
    process.eof |= eof;
    return process.stdin.size();
  }

  @Override
  public void signal(String processId, int signal, SignalScope scope) {
    Process process = process(processId);
    process.signals.add(signal);
    if (signal == 9 && !process.ended()) {
      process.killed(9);
    }
  }

  @Override
  public void resize(String processId, ProcessSpec.PtySize size) {
    process(processId).size = size;
  }

  @Override
  public List<ProcessInfo> processes() {
    return List.of();
  }

  @Override
  public void release(String processId) {
    process(processId).released = true;
  }

  private static UnsupportedOperationException notHere() {
    return new UnsupportedOperationException("this guest has no files and no ports");
  }

  @Override
  public FileEntry stat(String path, Optional<String> user) {
    throw notHere();
  }

  @Override
  public void listDir(
      String path, Optional<String> user, int depth, boolean xattrs, EntrySink sink) {
    throw notHere();
  }

  @Override
  public FileEntry makeDir(
      String path, Optional<String> user, Optional<Integer> mode, boolean parents) {
    throw notHere();
  }

  @Override
  public FileEntry move(
      String source,
      String destination,
      Optional<String> user,
      boolean parents,
      boolean overwrite) {
    throw notHere();
  }

  @Override
  public long remove(String path, Optional<String> user, boolean recursive) {
    throw notHere();
  }

  @Override
  public FileReading readFile(
      String path, Optional<String> user, long offset, Optional<Long> length) {
    throw notHere();
  }

  @Override
  public FileEntry writeFile(WriteFileSpec spec, InputStream body) {
    throw notHere();
  }

  @Override
  public InputStream readTree(String path, Optional<String> user) {
    throw notHere();
  }

  @Override
  public TreeWritten writeTree(
      String path, Optional<String> user, boolean keepOwners, InputStream tar) {
    throw notHere();
  }

  @Override
  public void watch(WatchSpec spec, WatchSink sink) {
    throw notHere();
  }

  @Override
  public long markWatch(String id) {
    throw notHere();
  }

  /// Ports of this guest are those of the machine that runs the test.
  @Override
  public Tunnel connect(int port) {
    Socket socket;
    try {
      socket = new Socket("127.0.0.1", port);
    } catch (IOException e) {
      throw Problem.of(ErrorCode.PORT_CLOSED, "Nothing listens on port " + port)
          .because(String.valueOf(e.getMessage()))
          .toException(e);
    }
    return new Tunnel() {
      @Override
      public InputStream in() {
        return unchecked(socket::getInputStream);
      }

      @Override
      public OutputStream out() {
        OutputStream to = unchecked(socket::getOutputStream);
        return new FilterOutputStream(to) {
          @Override
          public void write(byte[] bytes, int at, int count) throws IOException {
            out.write(bytes, at, count);
          }

          @Override
          public void close() throws IOException {
            socket.shutdownOutput();
          }
        };
      }

      @Override
      public void close() {
        unchecked(
            () -> {
              socket.close();
              return socket;
            });
      }
    };
  }

  private interface Io<T> {
    T get() throws IOException;
  }

  private static <T> T unchecked(Io<T> io) {
    try {
      return io.get();
    } catch (IOException e) {
      throw Problem.of(ErrorCode.GUEST_UNREACHABLE, "closed").toException(e);
    }
  }

  @Override
  public GuestStats stats() {
    throw notHere();
  }

  @Override
  public void sync() {}

  @Override
  public void shutdown(Duration grace) {}
}
