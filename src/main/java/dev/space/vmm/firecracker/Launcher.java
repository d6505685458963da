package dev.space.vmm.firecracker;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.host.Command;
import dev.space.host.PlainText;
import dev.space.host.ProcessIdentity;
import dev.space.host.Processes;
import dev.space.vmm.firecracker.FirecrackerSettings.Jail;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;

/// Starts Firecracker processes and opens their API.
final class Launcher {

  /// The host ends guests before its own services when it runs out of memory.
  private static final int OOM_SCORE_ADJ = 300;

  private static final int FILES_MAX = 2048;
  private static final Duration GONE_DEADLINE = Duration.ofSeconds(10);
  private static final long LOOK_NANOS = Duration.ofMillis(1).toNanos() / 2;
  private static final int LOG_CHARS_MAX = 2048;
  private static final int ID_CHARS_MAX = 12;

  /// What stands in the lines of each call.
  private static final List<String> CALLS =
      List.of("The API server received a", "The request was executed successfully");

  /// Longest time from the start of a process to its socket.
  private static final Duration START_DEADLINE = Duration.ofSeconds(30);

  private final FirecrackerSettings settings;
  private final Path binary;
  private final FirecrackerVersion version;
  private final Processes processes;

  /// @param binary full path of the Firecracker
  Launcher(
      FirecrackerSettings settings, Path binary, FirecrackerVersion version, Processes processes) {
    this.settings = settings;
    this.binary = binary;
    this.version = version;
    this.processes = processes;
  }

  /// A process that answers.
  ///
  /// @param startNanos from the process's start until its socket was there
  record Started(ProcessIdentity process, Api api, long startNanos) {}

  /// The ground that a new process of a VM gets.
  ///
  /// @param user whom it is to run as; given when there is a jail
  Ground ground(Path directory, String id, Optional<Integer> user) {
    return switch (settings.jail()) {
      case Jail.None _ -> Ground.open(directory);
      case Jail.Jailer _ ->
          Ground.jailed(
              directory, binary.getFileName().toString(), shortId(id), user.orElseThrow());
    };
  }

  /// A jail's path holds it, and the path of a socket is bounded. It need not be unique, because
  /// each jail lies in its VM's own directory.
  private static String shortId(String id) {
    String word = id.replaceAll("[^A-Za-z0-9-]", "-");
    return word.length() > ID_CHARS_MAX ? word.substring(0, ID_CHARS_MAX) : word;
  }

  /// Starts a process on a prepared ground and returns when it takes calls.
  Started start(Ground ground, String id, Optional<Path> cgroup) throws IOException {
    ground.socket(Ground.VSOCK);
    ground.fresh(Ground.LOG);
    ProcessIdentity first =
        processes.detach(
            Command.of(START_DEADLINE, arguments(ground, id)).in(ground.home()),
            ground.file(Ground.OUTPUT),
            OOM_SCORE_ADJ,
            cgroup);
    long started = System.nanoTime();
    boolean done = false;
    Optional<ProcessIdentity> process = Optional.empty();
    try {
      while (true) {
        process = process.isPresent() ? process : vmm(ground, first);
        Optional<Api> api = process.isPresent() ? connect(ground, process.get()) : Optional.empty();
        if (api.isPresent()) {
          long ready = System.nanoTime();
          requireVersion(api.get());
          done = true;
          return new Started(process.orElseThrow(), api.get(), ready - started);
        }
        if (process.isPresent() ? !process.get().alive() : !first.alive()) {
          // A jailer that has just ended may have left its process's id a moment before.
          process = vmm(ground, first);
          if (process.filter(ProcessIdentity::alive).isEmpty()) {
            throw failed(ground, "it ended at its start");
          }
        }
        if (System.nanoTime() - started > START_DEADLINE.toNanos()) {
          throw failed(ground, "no answer within " + START_DEADLINE.toMillis() + " ms");
        }
        LockSupport.parkNanos(LOOK_NANOS);
        if (Thread.currentThread().isInterrupted()) {
          throw Problem.of(ErrorCode.CANCELLED, "The start of a VM was given up.").toException();
        }
      }
    } finally {
      if (!done) {
        first.kill();
        process.or(() -> vmm(ground, first)).ifPresent(Launcher::end);
      }
    }
  }

  private static void end(ProcessIdentity process) {
    process.kill();
    process.awaitGone(GONE_DEADLINE);
  }

  private List<String> arguments(Ground ground, String id) {
    List<String> args = new ArrayList<>(32);
    switch (settings.jail()) {
      case Jail.None _ -> {
        // An absolute path: it is how a process is found again by its VM's directory.
        args.addAll(List.of(binary.toString(), "--id", word(id)));
        args.addAll(List.of("--api-sock", ground.socket(Ground.API).toString()));
        args.addAll(List.of("--log-path", Ground.LOG, "--level", "Info"));
      }
      case Jail.Jailer(String jailer, var _) -> {
        String user = Integer.toString(ground.user().orElseThrow());
        // A network namespace without a name goes with its process; there is nothing in it.
        args.addAll(List.of("unshare", "--net", "--", jailer, "--id", shortId(id)));
        args.addAll(List.of("--exec-file", binary.toString(), "--uid", user, "--gid", user));
        args.addAll(List.of("--chroot-base-dir", ground.home().toString()));
        args.addAll(List.of("--resource-limit", "no-file=" + FILES_MAX, "--new-pid-ns"));
        args.addAll(List.of("--", "--api-sock", "/" + Ground.API));
        args.addAll(List.of("--log-path", "/" + Ground.LOG, "--level", "Info"));
      }
    }
    return args;
  }

  private static String word(String id) {
    String word = id.replaceAll("[^A-Za-z0-9-]", "-");
    return word.length() > 64 ? word.substring(0, 64) : word;
  }

  /// The Firecracker process: the one that was started, or, in a process id namespace of its own,
  /// the one whose id the jailer left in the jail before it ended.
  private Optional<ProcessIdentity> vmm(Ground ground, ProcessIdentity first) {
    if (settings.jail() instanceof Jail.None) {
      return Optional.of(first);
    }
    Path file = ground.view().resolve(binary.getFileName() + ".pid");
    try {
      return Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)
          ? ProcessIdentity.of(Long.parseLong(Files.readString(file).strip()))
          : Optional.empty();
    } catch (IOException | NumberFormatException _) {
      return Optional.empty();
    }
  }

  private static Optional<Api> connect(Ground ground, ProcessIdentity process) {
    try {
      return Optional.of(Api.connect(ground.socket(Ground.API), ground.user(), process::kill));
    } catch (IOException _) {
      return Optional.empty();
    }
  }

  /// The binary may have been replaced since the daemon started.
  private void requireVersion(Api api) {
    String now = api.get("/version", settings.call()).path("firecracker_version").asString("");
    if (!now.equals(version.full())) {
      throw Problem.of(
              ErrorCode.VMM_FAILED, "Firecracker is now " + now + ", it was " + version.full())
          .remedy("Restart the service, so that it takes note of the new version.")
          .toException();
    }
  }

  /// What the process said last, but for the calls that it tells of one by one.
  static String log(Ground ground) {
    String all =
        Processes.tail(ground.file(Ground.OUTPUT)) + "\n" + Processes.tail(ground.file(Ground.LOG));
    String text =
        PlainText.of(all)
            .lines()
            .filter(line -> CALLS.stream().noneMatch(line::contains))
            .collect(Collectors.joining("\n"))
            .strip();
    return text.length() > LOG_CHARS_MAX ? text.substring(text.length() - LOG_CHARS_MAX) : text;
  }

  private static SpaceException failed(Ground ground, String why) {
    String log = log(ground);
    int status = ExitCause.status(log);
    String cause = status > 0 ? why + " (" + ExitCause.cause(status) + ")" : why;
    return Problem.of(ErrorCode.VMM_FAILED, "Firecracker could not be started.")
        .because(log.isEmpty() ? cause : cause + "; it said: " + log)
        .toException();
  }
}
