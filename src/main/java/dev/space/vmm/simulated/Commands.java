package dev.space.vmm.simulated;

import dev.space.core.error.SpaceException;
import dev.space.core.guest.FileEntry;
import dev.space.core.guest.OutputEvent.Stream;
import dev.space.core.guest.WriteFileSpec;
import dev.space.vmm.simulated.Shell.Step;
import dev.space.vmm.simulated.Shell.Terminal;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// The commands a simulated guest has.
///
/// | command | does |
/// |---|---|
/// | `echo [-n] …`, `printf TEXT …`, `true`, `false`, `:`, `exit N`, `pwd`, `cd`, `export N=V`, `env`, `printenv N`, `hostname`, `whoami`, `id -u`, `test`/`[` `-e -f -d` | as usual |
/// | `cat [FILE…]`, `ls`, `mkdir [-p]`, `rm [-rf]`, `touch`, `ln -s`, `sync` | as usual, on the guest's files |
/// | `sleep SECONDS` | sleeps by the guest's clock, which stands still in a paused guest |
/// | `date` | milliseconds since 1970 by the guest's clock |
/// | `machine-id`, `random` | identity; the next number of the guest's generator |
/// | `yes [WORD]` | writes lines for ever |
/// | `seq FROM TO` | numbers, one a line |
/// | `gen BYTES` | that many bytes, the n-th being `n % 251` |
/// | `listen PORT`, `httpd PORT TEXT` | echoes what a tunnel sends; answers every HTTP request with the text |
/// | `trap '' TERM` | ignores the signal |
/// | `stty size`, `tty` | the terminal |
/// | `crash`, `poweroff`, `c` or `o` into `/proc/sysrq-trigger` | the kernel panics; the guest powers off |
final class Commands {

  private static final String SYSRQ = "/proc/sysrq-trigger";
  private static final int CHUNK = 32 * 1024;
  private static final int LINE_BUDGET = 4096;

  private static final Set<String> NAMES =
      Set.of(
          "echo",
          "printf",
          "true",
          "false",
          ":",
          "exit",
          "pwd",
          "cd",
          "export",
          "env",
          "printenv",
          "hostname",
          "whoami",
          "id",
          "test",
          "[",
          "cat",
          "ls",
          "mkdir",
          "rm",
          "touch",
          "ln",
          "sync",
          "sleep",
          "date",
          "machine-id",
          "random",
          "yes",
          "seq",
          "gen",
          "listen",
          "httpd",
          "trap",
          "stty",
          "tty",
          "crash",
          "poweroff",
          "unsimulated");

  private Commands() {}

  static boolean exists(String name) {
    return NAMES.contains(name);
  }

  /// One step of one command. All its errors go to its stderr, as a program's do.
  static Step step(
      Shell shell,
      SimulatedGuest guest,
      Terminal terminal,
      List<String> words,
      Script.Output output,
      int uid) {
    String name = words.getFirst().substring(words.getFirst().lastIndexOf('/') + 1);
    Run run = new Run(shell, guest, terminal, output, uid);
    try {
      return run.step(name, words.subList(1, words.size()));
    } catch (SpaceException e) {
      run.error(name + ": " + e.problem().oneLine());
      return new Step.Done(1);
    } catch (NumberFormatException e) {
      run.error(name + ": not a number");
      return new Step.Done(2);
    }
  }

  private record Run(
      Shell shell, SimulatedGuest guest, Terminal terminal, Script.Output output, int uid) {

    Step step(String name, List<String> args) {
      return switch (name) {
        case "true", ":" -> done(0);
        case "false" -> done(1);
        case "exit" ->
            new Step.Exit(args.isEmpty() ? shell.status : Integer.parseInt(args.getFirst()) & 0xff);
        case "echo" -> echo(args);
        case "printf" -> out(args.isEmpty() ? "" : escapes(String.join("", args)));
        case "pwd" -> out(shell.cwd + "\n");
        case "cd" -> cd(args);
        case "export" -> export(args);
        case "env" -> env();
        case "printenv" -> printenv(args);
        case "hostname" -> out(guest.hostname() + "\n");
        case "whoami" -> out((uid == 0 ? "root" : "user") + "\n");
        case "id" -> out(uid + "\n");
        case "test", "[" -> test(args);
        case "cat" -> cat(args);
        case "ls" -> ls(args);
        case "mkdir", "rm", "touch", "ln" -> files(name, args);
        case "sync" -> done(0);
        case "sleep" -> sleep(args);
        case "date" -> out(guest.clockMillis() + "\n");
        case "machine-id" -> out(guest.machineId() + "\n");
        case "random" -> out(Long.toUnsignedString(guest.nextRandom()) + "\n");
        case "yes" -> yes(args.isEmpty() ? "y" : args.getFirst());
        case "seq" -> seq(args);
        case "gen" -> gen(Long.parseLong(args.getFirst()));
        case "listen" -> listen(args, Optional.empty());
        case "httpd" -> listen(args, Optional.of(String.join(" ", args.subList(1, args.size()))));
        case "trap" -> trap(args);
        case "stty" -> out(terminal.size() + "\n");
        case "tty" -> terminal.pty() ? out("/dev/pts/0\n") : fail("not a tty");
        case "crash" -> {
          guest.panic();
          yield Shell.INPUT;
        }
        case "poweroff" -> {
          guest.powerOff();
          yield Shell.INPUT;
        }
        case "unsimulated" -> {
          error("sh: this script is more than the simulated shell understands");
          yield done(2);
        }
        default -> {
          error("sh: " + name + ": not found");
          yield done(127);
        }
      };
    }

    private static Step done(int status) {
      return new Step.Done(status);
    }

    private Step out(String text) {
      write(text.getBytes(StandardCharsets.UTF_8));
      return done(0);
    }

    private Step fail(String text) {
      error(text);
      return done(1);
    }

    void error(String text) {
      terminal.emit(
          terminal.pty() ? Stream.PTY : Stream.STDERR,
          (text + "\n").getBytes(StandardCharsets.UTF_8));
    }

    private void write(byte[] data) {
      switch (output.kind()) {
        case STDOUT -> emit(Stream.STDOUT, data);
        case STDERR -> emit(Stream.STDERR, data);
        case FILE -> file(data, shell.position == 0);
        case APPEND -> file(data, false);
      }
    }

    private void emit(Stream stream, byte[] data) {
      if (data.length > 0) {
        terminal.emit(terminal.pty() ? Stream.PTY : stream, data);
      }
    }

    private void file(byte[] data, boolean truncate) {
      String to = path(Script.join(output.file(), shell.env, shell.status));
      if (to.equals(SYSRQ)) {
        sysrq(data);
      } else {
        guest.files().append(to, data, truncate, uid);
      }
    }

    private void sysrq(byte[] data) {
      switch (data.length == 0 ? 0 : data[0]) {
        case 'c' -> guest.panic();
        case 'o' -> guest.powerOff();
        default -> {
          // The kernel knows more, of which nothing is simulated.
        }
      }
    }

    private String path(String path) {
      return SimulatedFiles.absolute(path, shell.cwd);
    }

    private Step echo(List<String> args) {
      boolean bare = !args.isEmpty() && args.getFirst().equals("-n");
      return out(String.join(" ", bare ? args.subList(1, args.size()) : args) + (bare ? "" : "\n"));
    }

    private static String escapes(String text) {
      return text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\\", "\\");
    }

    private Step cd(List<String> args) {
      String to = path(args.isEmpty() ? guest.home(uid) : args.getFirst());
      if (!guest.files().isDirectory(to)) {
        return fail("cd: " + to + ": no such directory");
      }
      shell.cwd = to;
      return done(0);
    }

    private Step export(List<String> args) {
      for (String arg : args) {
        int equals = arg.indexOf('=');
        if (equals > 0) {
          shell.env.put(arg.substring(0, equals), arg.substring(equals + 1));
        }
      }
      return done(0);
    }

    private Step env() {
      StringBuilder all = new StringBuilder();
      shell.env.forEach((name, value) -> all.append(name).append('=').append(value).append('\n'));
      return out(all.toString());
    }

    private Step printenv(List<String> args) {
      String value = args.isEmpty() ? null : shell.env.get(args.getFirst());
      return value == null ? done(1) : out(value + "\n");
    }

    private Step test(List<String> args) {
      if (args.size() < 2) {
        return done(2);
      }
      Optional<FileEntry> entry = guest.files().statIfThere(path(args.get(1)));
      boolean yes =
          switch (args.getFirst()) {
            case "-e" -> entry.isPresent();
            case "-f" -> entry.filter(e -> e.type() == FileEntry.Type.FILE).isPresent();
            case "-d" -> guest.files().isDirectory(path(args.get(1)));
            default -> false;
          };
      return done(yes ? 0 : 1);
    }

    private Step cat(List<String> args) {
      if (!args.isEmpty()) {
        for (String arg : args) {
          byte[] data = guest.files().read(path(arg));
          for (int at = 0; at < data.length; at += CHUNK) {
            write(java.util.Arrays.copyOfRange(data, at, Math.min(data.length, at + CHUNK)));
          }
        }
        return done(0);
      }
      byte[] data = terminal.input(CHUNK);
      if (data == null) {
        return done(0);
      }
      if (data.length == 0) {
        return Shell.INPUT;
      }
      write(data);
      shell.position += data.length;
      return Shell.AGAIN;
    }

    private Step ls(List<String> args) {
      StringBuilder all = new StringBuilder();
      guest
          .files()
          .list(path(args.isEmpty() ? "." : args.getLast()), 1)
          .forEach(e -> all.append(e.name()).append('\n'));
      return out(all.toString());
    }

    private Step files(String name, List<String> args) {
      boolean option = !args.isEmpty() && args.getFirst().startsWith("-");
      List<String> rest = option ? args.subList(1, args.size()) : args;
      if (name.equals("ln")) {
        guest.files().link(path(rest.get(1)), rest.getFirst(), uid);
        return done(0);
      }
      for (String arg : rest) {
        switch (name) {
          case "mkdir" -> guest.files().makeDir(path(arg), 0755, option, uid);
          case "rm" -> {
            if (guest.files().remove(path(arg), option) == 0 && !option) {
              return fail("rm: " + arg + ": no such file");
            }
          }
          default ->
              guest
                  .files()
                  .write(
                      new WriteFileSpec(
                          path(arg),
                          Optional.empty(),
                          Optional.empty(),
                          false,
                          false,
                          Optional.empty(),
                          guest.files().statIfThere(path(arg)).map(FileEntry::size).orElse(0L)),
                      path(arg),
                      new byte[0],
                      uid);
        }
      }
      return done(0);
    }

    private Step sleep(List<String> args) {
      if (shell.wakeUp == Shell.PENDING) {
        double seconds =
            args.isEmpty() ? 0 : Double.parseDouble(args.getFirst().replace("infinity", "1e12"));
        shell.wakeUp = guest.upMillis() + (long) (seconds * 1000);
      }
      return guest.upMillis() >= shell.wakeUp ? done(0) : new Step.Until(shell.wakeUp);
    }

    private Step yes(String word) {
      byte[] line = (word + "\n").getBytes(StandardCharsets.UTF_8);
      byte[] data = new byte[line.length * Math.max(1, CHUNK / line.length)];
      for (int at = 0; at < data.length; at += line.length) {
        System.arraycopy(line, 0, data, at, line.length);
      }
      write(data);
      shell.position += data.length;
      return Shell.AGAIN;
    }

    private Step seq(List<String> args) {
      long from = args.size() < 2 ? 1 : Long.parseLong(args.getFirst());
      long to = Long.parseLong(args.getLast());
      StringBuilder some = new StringBuilder();
      long next = from + shell.position;
      for (int n = 0; n < LINE_BUDGET && next <= to; n++) {
        some.append(next++).append('\n');
      }
      write(some.toString().getBytes(StandardCharsets.UTF_8));
      shell.position = next - from;
      return next > to ? done(0) : Shell.AGAIN;
    }

    private Step gen(long bytes) {
      int n = (int) Math.min(CHUNK, bytes - shell.position);
      byte[] data = new byte[Math.max(0, n)];
      for (int i = 0; i < data.length; i++) {
        data[i] = (byte) ((shell.position + i) % 251);
      }
      write(data);
      shell.position += data.length;
      return shell.position >= bytes ? done(0) : Shell.AGAIN;
    }

    private Step listen(List<String> args, Optional<String> answer) {
      guest.listen(Integer.parseInt(args.getFirst()), new SimulatedGuest.Port(shell, answer));
      return new Step.Until(Long.MAX_VALUE);
    }

    private Step trap(List<String> args) {
      Map<String, Integer> numbers = Map.of("HUP", 1, "INT", 2, "QUIT", 3, "TERM", 15, "USR1", 10);
      for (String arg : args.subList(Math.min(1, args.size()), args.size())) {
        Integer number = numbers.get(arg.replaceFirst("^SIG", ""));
        if (number != null) {
          shell.ignored.add(number);
        }
      }
      return done(0);
    }
  }
}
