package dev.space.vmm.simulated;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// What the simulated shell understands of a shell's language: simple commands joined by `;`, new
/// lines, `&&` and `||`; quotes; `$NAME`, `${NAME}` and `$?`; output to a file or to stderr. What
/// it doesn't understand is an error, never something else.
record Script(List<Command> commands) {

  /// When a command runs, given the status of the one before.
  enum Join {
    ALWAYS,
    ON_SUCCESS,
    ON_FAILURE
  }

  /// Where a command's output goes.
  record Output(Kind kind, List<Piece> file) {
    enum Kind {
      STDOUT,
      STDERR,
      FILE,
      APPEND
    }
  }

  /// Part of a word: text as it is, or the name of a variable.
  record Piece(boolean variable, String text) {}

  record Command(Join join, List<List<Piece>> words, Output output) {
    List<String> expand(Map<String, String> env, int status) {
      List<String> out = new ArrayList<>();
      for (List<Piece> word : words) {
        out.add(Script.join(word, env, status));
      }
      return out;
    }
  }

  static final int LENGTH_MAX = 1 << 20;
  private static final Output STDOUT = new Output(Output.Kind.STDOUT, List.of());

  static String join(List<Piece> word, Map<String, String> env, int status) {
    StringBuilder text = new StringBuilder();
    for (Piece piece : word) {
      if (!piece.variable()) {
        text.append(piece.text());
      } else if (piece.text().equals("?")) {
        text.append(status);
      } else {
        text.append(env.getOrDefault(piece.text(), ""));
      }
    }
    return text.toString();
  }

  /// A command given as words, which no shell reads.
  static Script literal(List<String> argv) {
    List<List<Piece>> words = argv.stream().map(a -> List.of(new Piece(false, a))).toList();
    return new Script(List.of(new Command(Join.ALWAYS, words, STDOUT)));
  }

  /// Reads a script; empty when it has something that is not understood.
  static Optional<Script> parse(String text) {
    if (text.length() > LENGTH_MAX) {
      return Optional.empty();
    }
    return new Parser(text).script();
  }

  private static final class Parser {
    private final String text;
    private int at;

    Parser(String text) {
      this.text = text;
    }

    Optional<Script> script() {
      List<Command> commands = new ArrayList<>();
      Join join = Join.ALWAYS;
      while (true) {
        blanks();
        if (at >= text.length()) {
          return Optional.of(new Script(List.copyOf(commands)));
        }
        if (text.charAt(at) == ';' || text.charAt(at) == '\n') {
          at++;
          continue;
        }
        Optional<Command> command = command(join);
        if (command.isEmpty()) {
          return Optional.empty();
        }
        commands.add(command.get());
        blanks();
        if (text.startsWith("&&", at)) {
          join = Join.ON_SUCCESS;
          at += 2;
        } else if (text.startsWith("||", at)) {
          join = Join.ON_FAILURE;
          at += 2;
        } else {
          join = Join.ALWAYS;
        }
      }
    }

    private Optional<Command> command(Join join) {
      List<List<Piece>> words = new ArrayList<>();
      Output output = STDOUT;
      while (true) {
        blanks();
        if (at >= text.length()
            || text.charAt(at) == ';'
            || text.charAt(at) == '\n'
            || text.startsWith("&&", at)
            || text.startsWith("||", at)) {
          return words.isEmpty()
              ? Optional.empty()
              : Optional.of(new Command(join, List.copyOf(words), output));
        }
        if (text.startsWith("1>&2", at) || text.startsWith(">&2", at)) {
          at = text.indexOf("&2", at) + 2;
          output = new Output(Output.Kind.STDERR, List.of());
          continue;
        }
        if (text.startsWith("2>&1", at)) {
          at += 4;
          continue;
        }
        if (text.charAt(at) == '>') {
          boolean append = text.startsWith(">>", at);
          at += append ? 2 : 1;
          blanks();
          List<Piece> file = new ArrayList<>();
          if (!word(file)) {
            return Optional.empty();
          }
          output = new Output(append ? Output.Kind.APPEND : Output.Kind.FILE, List.copyOf(file));
          continue;
        }
        List<Piece> word = new ArrayList<>();
        if (!word(word)) {
          return Optional.empty();
        }
        words.add(List.copyOf(word));
      }
    }

    private boolean word(List<Piece> into) {
      StringBuilder plain = new StringBuilder();
      boolean any = false;
      while (at < text.length()) {
        char c = text.charAt(at);
        if (" \t\n;>".indexOf(c) >= 0) {
          break;
        }
        if ("|&<`(){}*".indexOf(c) >= 0) {
          if (c == '&' && text.startsWith("&&", at) || c == '|' && text.startsWith("||", at)) {
            break;
          }
          return false;
        }
        any = true;
        if (c == '\'') {
          int end = text.indexOf('\'', at + 1);
          if (end < 0) {
            return false;
          }
          plain.append(text, at + 1, end);
          at = end + 1;
        } else if (c == '"') {
          if (!quoted(plain, into)) {
            return false;
          }
        } else if (c == '\\' && at + 1 < text.length()) {
          plain.append(text.charAt(at + 1));
          at += 2;
        } else if (c == '$') {
          if (!variable(plain, into)) {
            return false;
          }
        } else {
          plain.append(c);
          at++;
        }
      }
      into.add(new Piece(false, plain.toString()));
      return any;
    }

    private boolean quoted(StringBuilder plain, List<Piece> into) {
      at++;
      while (at < text.length() && text.charAt(at) != '"') {
        char c = text.charAt(at);
        if (c == '\\' && at + 1 < text.length() && "\"\\$`".indexOf(text.charAt(at + 1)) >= 0) {
          plain.append(text.charAt(at + 1));
          at += 2;
        } else if (c == '$') {
          if (!variable(plain, into)) {
            return false;
          }
        } else {
          plain.append(c);
          at++;
        }
      }
      if (at >= text.length()) {
        return false;
      }
      at++;
      return true;
    }

    private boolean variable(StringBuilder plain, List<Piece> into) {
      int start = at + 1;
      int end = start;
      if (text.startsWith("{", start)) {
        end = text.indexOf('}', start);
        if (end < 0) {
          return false;
        }
        piece(plain, into, text.substring(start + 1, end));
        at = end + 1;
        return true;
      }
      if (text.startsWith("?", start)) {
        piece(plain, into, "?");
        at = start + 1;
        return true;
      }
      while (end < text.length()
          && (Character.isLetterOrDigit(text.charAt(end)) || text.charAt(end) == '_')) {
        end++;
      }
      if (end == start) {
        if (text.startsWith("(", start)) {
          return false;
        }
        plain.append('$');
        at++;
        return true;
      }
      piece(plain, into, text.substring(start, end));
      at = end;
      return true;
    }

    private static void piece(StringBuilder plain, List<Piece> into, String name) {
      into.add(new Piece(false, plain.toString()));
      plain.setLength(0);
      into.add(new Piece(true, name));
    }

    private void blanks() {
      while (at < text.length() && (text.charAt(at) == ' ' || text.charAt(at) == '\t')) {
        at++;
      }
    }
  }
}
