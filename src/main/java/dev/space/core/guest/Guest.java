package dev.space.core.guest;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// A running guest, as `proto/agent.proto` lets the host use it. Calls block; interrupting the
/// calling thread cancels them. Failures are `SpaceException`s: what the guest refused has its own
/// code, a lost link is `GUEST_UNREACHABLE`, a dead guest `SANDBOX_DIED`.
///
/// Everything that comes from a guest is hostile: implementations bound every size and wait.
public interface Guest {

  // -- processes

  ProcessInfo start(ProcessSpec spec);

  /// Starts a process, unless there is one with its id, and gives its events as [#output] does: the
  /// first output comes after one exchange with the guest. Before the first event a failure means
  /// what it means for [#start].
  default void run(ProcessSpec spec, long afterSeq, OutputSink sink) {
    start(spec);
    output(spec.id(), afterSeq, sink);
  }

  /// Gives every event after `afterSeq` to the sink, up to and with the exit, then returns. A sink
  /// that blocks slows the process down in the end.
  void output(String processId, long afterSeq, OutputSink sink);

  /// Takes output events; may block.
  @FunctionalInterface
  interface OutputSink {
    void accept(OutputEvent event);
  }

  /// Writes input at its position in the whole input, so that a repeated call can't double bytes.
  ///
  /// @return the next position
  long writeStdin(String processId, long offset, byte[] data, boolean eof);

  void signal(String processId, int signal, SignalScope scope);

  enum SignalScope {
    PROCESS,
    TREE,
    FOREGROUND
  }

  void resize(String processId, ProcessSpec.PtySize size);

  List<ProcessInfo> processes();

  /// Forgets an ended process; unknown ids are no error.
  void release(String processId);

  // -- files; an empty user means the sandbox's default user

  FileEntry stat(String path, Optional<String> user);

  /// Entries below a directory, depth first, in order of name; `depth` 1 is the directory alone.
  void listDir(String path, Optional<String> user, int depth, boolean xattrs, EntrySink sink);

  @FunctionalInterface
  interface EntrySink {
    void accept(FileEntry entry);
  }

  FileEntry makeDir(String path, Optional<String> user, Optional<Integer> mode, boolean parents);

  FileEntry move(
      String source, String destination, Optional<String> user, boolean parents, boolean overwrite);

  /// Removes an entry and says how many went; 0 when there was nothing.
  long remove(String path, Optional<String> user, boolean recursive);

  /// Opens a file to read from a byte on; an empty length means to the end.
  FileReading readFile(String path, Optional<String> user, long offset, Optional<Long> length);

  /// An open read. Closing it early cancels it.
  interface FileReading extends AutoCloseable {
    /// The file itself, links followed.
    FileEntry entry();

    InputStream body();

    @Override
    void close();
  }

  FileEntry writeFile(WriteFileSpec spec, InputStream body) throws IOException;

  /// A tree as a tar stream (PAX). Closing it early cancels it.
  InputStream readTree(String path, Optional<String> user);

  /// Unpacks a tar stream into a directory.
  TreeWritten writeTree(String path, Optional<String> user, boolean keepOwners, InputStream tar)
      throws IOException;

  record TreeWritten(long files, long bytes) {}

  /// Gives every change to the sink until the calling thread is interrupted; `ARMED` comes first.
  void watch(WatchSpec spec, WatchSink sink);

  /// Has an open watch say when it has reported every change made before this call: its sink gets
  /// them, and then a `MARK` of at least the number this gives.
  ///
  /// @param id of the watch's spec
  /// @throws dev.space.core.error.SpaceException NOT_SUPPORTED by an agent of an older version,
  ///   NOT_FOUND when no such watch is open
  long markWatch(String id);

  /// @param id names the watch for [#markWatch]; a later watch takes the name of an earlier one
  record WatchSpec(
      String path,
      Optional<String> user,
      boolean recursive,
      boolean entries,
      boolean allowNetworkMounts,
      Optional<String> id) {

    /// A watch that is never asked for a mark.
    public WatchSpec(
        String path,
        Optional<String> user,
        boolean recursive,
        boolean entries,
        boolean allowNetworkMounts) {
      this(path, user, recursive, entries, allowNetworkMounts, Optional.empty());
    }

    public WatchSpec named(String name) {
      return new WatchSpec(path, user, recursive, entries, allowNetworkMounts, Optional.of(name));
    }
  }

  @FunctionalInterface
  interface WatchSink {
    void accept(WatchEvent event);
  }

  // -- ports

  /// Opens a connection to a port on the guest's loopback.
  ///
  /// @throws dev.space.core.error.SpaceException PORT_CLOSED when nothing listens there
  Tunnel connect(int port);

  /// A byte stream to a server in the guest.
  interface Tunnel extends AutoCloseable {
    InputStream in();

    /// Closing it half-closes the connection towards the server.
    OutputStream out();

    @Override
    void close();
  }

  // -- the guest itself

  GuestStats stats();

  /// Writes everything dirty to the disk.
  void sync();

  /// Ends all processes and powers off. The link ends afterwards.
  void shutdown(Duration grace);

  /// Environment and defaults of a guest, sent with every adoption.
  record Adoption(
      boolean newIdentity,
      String sandboxId,
      String hostname,
      Map<String, String> env,
      Optional<String> defaultUser,
      Optional<String> defaultWorkdir) {}
}
