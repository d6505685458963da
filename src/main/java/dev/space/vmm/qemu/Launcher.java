package dev.space.vmm.qemu;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.host.Command;
import dev.space.host.ProcessIdentity;
import dev.space.host.Processes;
import dev.space.host.SocketPath;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/// Starts QEMU processes and opens their control connection.
final class Launcher {

  /// The host ends guests before its own services when it runs out of memory.
  private static final int OOM_SCORE_ADJ = 300;

  private static final Duration START_DEADLINE = Duration.ofSeconds(60);
  private static final Duration GONE_DEADLINE = Duration.ofSeconds(10);
  private static final long LOOK_NANOS = Duration.ofMillis(1).toNanos() / 2;
  private static final int LOG_CHARS_MAX = 2048;

  static final String LOG = "qemu.log";

  private final Processes processes;

  Launcher(Processes processes) {
    this.processes = processes;
  }

  /// A process that answers.
  record Started(ProcessIdentity process, Qmp qmp) {}

  /// Starts a process in its directory and returns when it takes commands.
  ///
  /// @param user whom it becomes
  Started start(
      Path directory,
      List<String> arguments,
      Optional<Integer> user,
      Optional<Path> cgroup,
      Consumer<Qmp.Event> events) {
    prepare(directory, user);
    ProcessIdentity process =
        processes.detach(
            Command.of(START_DEADLINE, arguments).in(directory),
            directory.resolve(LOG),
            OOM_SCORE_ADJ,
            cgroup);
    boolean done = false;
    try {
      Qmp qmp = connect(directory, process, events);
      qmp.open(START_DEADLINE);
      done = true;
      return new Started(process, qmp);
    } finally {
      if (!done) {
        process.kill();
        process.awaitGone(GONE_DEADLINE);
      }
    }
  }

  /// The path of a socket, which the kernel bounds.
  static Path socket(Path directory, String name) {
    return SocketPath.of(directory.resolve(name));
  }

  /// What QEMU said last.
  static String log(Path directory) {
    String text = Processes.tail(directory.resolve(LOG)).strip();
    return text.length() > LOG_CHARS_MAX ? text.substring(text.length() - LOG_CHARS_MAX) : text;
  }

  /// Removes what an earlier process left. The directory stays the daemon's own: a process without
  /// privileges may pass through it to a file of its own, but replace nothing in it.
  private static void prepare(Path directory, Optional<Integer> user) {
    socket(directory, CommandLine.OUTGOING_SOCKET);
    try {
      for (String name :
          List.of(
              CommandLine.QMP_SOCKET,
              CommandLine.AGENT_SOCKET,
              CommandLine.INCOMING_SOCKET,
              CommandLine.OUTGOING_SOCKET,
              CommandLine.SAVED_STATE,
              LOG)) {
        Files.deleteIfExists(directory.resolve(name));
      }
      Files.deleteIfExists(CommandLine.pidFile(directory));
      if (user.isPresent()) {
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwx--x--x"));
      }
    } catch (IOException e) {
      throw Problem.of(ErrorCode.VMM_FAILED, "A VM's directory could not be prepared.")
          .because(String.valueOf(e.getMessage()))
          .toException(e);
    }
  }

  /// The socket is there a few milliseconds after the start; what comes after is waited for in it.
  private static Qmp connect(Path directory, ProcessIdentity process, Consumer<Qmp.Event> events) {
    Path socket = socket(directory, CommandLine.QMP_SOCKET);
    long start = System.nanoTime();
    while (true) {
      try {
        return Qmp.connect(socket, events);
      } catch (IOException e) {
        if (!process.alive()) {
          throw failed(directory, "it ended at its start");
        }
        if (System.nanoTime() - start > START_DEADLINE.toNanos()) {
          throw failed(directory, "no answer within " + START_DEADLINE.toMillis() + " ms");
        }
        LockSupport.parkNanos(LOOK_NANOS);
        if (Thread.currentThread().isInterrupted()) {
          throw Problem.of(ErrorCode.CANCELLED, "The start of a VM was given up.").toException(e);
        }
      }
    }
  }

  private static SpaceException failed(Path directory, String why) {
    String log = log(directory);
    return Problem.of(ErrorCode.VMM_FAILED, "QEMU could not be started.")
        .because(log.isEmpty() ? why : why + "; it said: " + log)
        .toException();
  }
}
