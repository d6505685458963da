package dev.space.vmm.simulated;

import dev.space.core.guest.OutputEvent.Stream;
import dev.space.vmm.simulated.GuestImage.SavedShell;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/// A simulated program: a script run one short step at a time, so that between two steps all there
/// is to know about it is a [SavedShell].
final class Shell {

  /// What a step came to.
  sealed interface Step {
    /// More to do at once.
    record Again() implements Step {}

    /// Nothing to do before this time since boot, in milliseconds.
    record Until(long up) implements Step {}

    /// Nothing to do before there is input.
    record Input() implements Step {}

    /// The command at hand is done.
    record Done(int status) implements Step {}

    /// The whole program is done.
    record Exit(int status) implements Step {}
  }

  static final Step AGAIN = new Step.Again();
  static final Step INPUT = new Step.Input();

  /// The process around the program.
  interface Terminal {
    void emit(Stream stream, byte[] data);

    /// Up to `max` bytes of input, none when there are none yet, null at its end.
    byte @Nullable [] input(int max);

    /// One line of input without its end, empty when there is none yet, null at its end.
    @Nullable Optional<String> line();

    boolean pty();

    String size();
  }

  static final int PENDING = -1;

  private String text;
  private final boolean literal;
  private final List<String> argv;
  private final boolean interactive;
  private Script script;
  int index;
  long position;
  long wakeUp;
  int status;
  String cwd;
  final TreeMap<String, String> env;
  final TreeSet<Integer> ignored;
  private boolean prompted;

  private Shell(SavedShell saved) {
    this.text = saved.text();
    this.literal = saved.literal();
    this.argv = saved.argv();
    this.interactive = saved.interactive();
    this.index = saved.index();
    this.position = saved.position();
    this.wakeUp = saved.wakeUp();
    this.status = saved.status();
    this.cwd = saved.cwd();
    this.env = new TreeMap<>(saved.env());
    this.ignored = new TreeSet<>(saved.ignored());
    this.script = literal ? Script.literal(argv) : Script.parse(text).orElse(new Script(List.of()));
    this.prompted = interactive;
  }

  static Shell restore(SavedShell saved) {
    return new Shell(saved);
  }

  SavedShell save() {
    return new SavedShell(
        text, literal, argv, interactive, index, position, wakeUp, status, cwd, env, ignored);
  }

  /// The program for a command line, or empty when there is no such command.
  static Optional<Shell> start(List<String> argv, String cwd, Map<String, String> env) {
    String name = argv.getFirst().substring(argv.getFirst().lastIndexOf('/') + 1);
    TreeMap<String, String> vars = new TreeMap<>(env);
    TreeSet<Integer> none = new TreeSet<>();
    if (name.equals("sh") || name.equals("bash")) {
      int option = 1;
      while (option < argv.size()
          && argv.get(option).startsWith("-")
          && !argv.get(option).endsWith("c")) {
        option++;
      }
      if (option + 1 < argv.size()) {
        String text = argv.get(option + 1);
        if (Script.parse(text).isEmpty()) {
          text = "unsimulated";
        }
        return Optional.of(
            new Shell(new SavedShell(text, false, argv, false, 0, 0, PENDING, 0, cwd, vars, none)));
      }
      return Optional.of(
          new Shell(new SavedShell("", false, argv, true, 0, 0, PENDING, 0, cwd, vars, none)));
    }
    if (!Commands.exists(name)) {
      return Optional.empty();
    }
    return Optional.of(
        new Shell(new SavedShell("", true, argv, false, 0, 0, PENDING, 0, cwd, vars, none)));
  }

  /// Ctrl-C in an interactive shell: ends the command at hand alone.
  boolean interrupt() {
    if (!interactive) {
      return false;
    }
    index = script.commands().size();
    position = 0;
    wakeUp = PENDING;
    status = 130;
    return true;
  }

  Step step(SimulatedGuest guest, Terminal terminal, int uid) {
    if (index >= script.commands().size()) {
      return interactive ? nextLine(terminal) : new Step.Exit(status);
    }
    Script.Command command = script.commands().get(index);
    boolean skip =
        switch (command.join()) {
          case ALWAYS -> false;
          case ON_SUCCESS -> status != 0;
          case ON_FAILURE -> status == 0;
        };
    if (skip) {
      index++;
      return AGAIN;
    }
    Step step =
        Commands.step(this, guest, terminal, command.expand(env, status), command.output(), uid);
    if (step instanceof Step.Done(int done)) {
      status = done;
      index++;
      position = 0;
      wakeUp = PENDING;
      return AGAIN;
    }
    return step;
  }

  private Step nextLine(Terminal terminal) {
    if (!prompted && terminal.pty()) {
      terminal.emit(Stream.PTY, "$ ".getBytes(StandardCharsets.UTF_8));
    }
    prompted = true;
    Optional<String> line = terminal.line();
    if (line == null) {
      return new Step.Exit(status);
    }
    if (line.isEmpty()) {
      return INPUT;
    }
    prompted = false;
    text = Script.parse(line.get()).isPresent() ? line.get() : "unsimulated";
    script = Script.parse(text).orElse(new Script(List.of()));
    index = 0;
    position = 0;
    return AGAIN;
  }
}
