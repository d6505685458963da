package dev.space.e2b;

import dev.space.core.template.Template;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import tools.jackson.databind.JsonNode;

/// Turns the steps of an E2B build into a recipe. A recipe puts all its files in place before it
/// runs anything, while steps come in any order: so what is copied goes to a folder of the build's
/// own first, and each `COPY` becomes a command in its place.
final class BuildSteps {

  static final String DEFAULT_USER = "user";
  private static final String STAGE = "/.e2b-build";
  private static final String PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  private static final Pattern VARIABLE =
      Pattern.compile("\\$(?:\\{([A-Za-z_][A-Za-z0-9_]*)}|([A-Za-z_][A-Za-z0-9_]*))");
  private static final Pattern NAME = Pattern.compile("[A-Za-z_][A-Za-z0-9_]*");
  private static final Pattern ACCOUNT = Pattern.compile("[a-z_][a-z0-9_-]{0,31}");

  private final Map<String, String> env;
  private final List<String> run = new ArrayList<>();
  private final List<String> hashes = new ArrayList<>();
  private String user;
  private String workdir;

  /// @param parent what is built upon; empty for a bare Debian
  BuildSteps(Optional<Template.Defaults> parent) {
    env = new LinkedHashMap<>(parent.map(Template.Defaults::env).orElse(Map.of()));
    user = parent.flatMap(Template.Defaults::user).orElse(DEFAULT_USER);
    workdir = parent.flatMap(Template.Defaults::workdir).orElseGet(() -> home(user));
  }

  private static String home(String name) {
    return name.equals("root") ? "/root" : "/home/" + name;
  }

  void add(JsonNode step) {
    List<String> args = new ArrayList<>();
    step.path("args").forEach(arg -> args.add(arg.asString()));
    String type = step.path("type").asString("");
    switch (type) {
      case "RUN" -> run(at(args, 0, type), account(optional(args, 1).orElse(user)));
      case "ENV" -> {
        for (int i = 0; i + 1 < args.size(); i += 2) {
          env(args.get(i), args.get(i + 1));
        }
      }
      case "WORKDIR" -> workdir(at(args, 0, type));
      case "USER" -> user = account(at(args, 0, type));
      case "COPY" ->
          copy(
              at(args, 0, type),
              at(args, 1, type),
              optional(args, 2),
              optional(args, 3),
              step.path("filesHash").asString(""));
      default -> throw new E2bError(400, "steps of type '" + type + "' are not supported");
    }
  }

  private static String at(List<String> args, int index, String type) {
    return optional(args, index)
        .orElseThrow(() -> new E2bError(400, type + " needs " + (index + 1) + " arguments"));
  }

  private static Optional<String> optional(List<String> args, int index) {
    return index < args.size()
        ? Optional.of(args.get(index)).filter(text -> !text.isEmpty())
        : Optional.empty();
  }

  private static String account(String name) {
    if (!ACCOUNT.matcher(name).matches()) {
      throw new E2bError(400, "'" + name + "' is no user name");
    }
    return name;
  }

  private void run(String command, String as) {
    StringBuilder script = new StringBuilder();
    env.forEach(
        (name, value) ->
            script.append("export ").append(name).append('=').append(quoted(value)).append('\n'));
    script.append("cd ").append(quoted(workdir)).append('\n').append(command);
    run.add(
        as.equals("root")
            ? "HOME=/root USER=root /bin/bash -c " + quoted(script.toString())
            : "runuser " + as + " -s /bin/bash -c " + quoted(script.toString()));
  }

  private void env(String name, String value) {
    if (!NAME.matcher(name).matches()) {
      throw new E2bError(400, "'" + name + "' is no name of a variable");
    }
    Matcher variable = VARIABLE.matcher(value);
    env.put(
        name,
        variable.replaceAll(
            found -> {
              String wanted = found.group(1) == null ? found.group(2) : found.group(1);
              return Matcher.quoteReplacement(
                  env.getOrDefault(wanted, wanted.equals("PATH") ? PATH : ""));
            }));
  }

  private void workdir(String path) {
    workdir = absolute(path);
    String quoted = quoted(workdir);
    run.add(
        "[ -d "
            + quoted
            + " ] || { mkdir -p "
            + quoted
            + "; chown "
            + user
            + ": "
            + quoted
            + "; }");
  }

  private String absolute(String path) {
    if (path.startsWith("/")) {
      return path;
    }
    if (path.equals("~") || path.startsWith("~/")) {
      return home(user) + path.substring(1);
    }
    String rest = path.replaceFirst("^(\\./)+|^\\.$", "");
    return rest.isEmpty() ? workdir : (workdir.equals("/") ? "" : workdir) + "/" + rest;
  }

  private void copy(
      String source,
      String destination,
      Optional<String> owner,
      Optional<String> mode,
      String hash) {
    int number = hashes.size();
    hashes.add(hash);
    String to = absolute(destination);
    boolean folder = destination.endsWith("/") || destination.equals(".");
    mode.ifPresent(
        m -> {
          if (!m.matches("[0-7]{3,4}")) {
            throw new E2bError(400, "'" + m + "' are no permission bits");
          }
        });
    String whose = owner.orElse(user);
    if (!whose.matches("[A-Za-z0-9_-]{1,32}(:[A-Za-z0-9_-]{1,32})?")) {
      throw new E2bError(400, "'" + whose + "' is no owner");
    }
    String own = whose.contains(":") ? whose : whose + ":";
    // What is copied gets owner and mode where it lies, so that nothing else at its destination
    // does.
    run.add(
        """
        d=%s
        for s in %s/%d/%s; do
          [ -e "$s" ] || { echo "COPY: %s is not there" >&2; exit 1; }
          chown -R %s "$s"%s
          if [ -d "$s" ]; then
            [ -d "$d" ] || { mkdir -p "$d"; chown %s "$d"; }
            cp -a "$s/." "$d/"
          elif %s[ -d "$d" ]; then
            [ -d "$d" ] || { mkdir -p "$d"; chown %s "$d"; }
            cp -a "$s" "${d%%/}/"
          else
            mkdir -p "$(dirname "$d")"
            cp -a "$s" "$d"
          fi
        done"""
            .formatted(
                quoted(to),
                STAGE,
                number,
                pattern(source),
                source.replaceAll("[^A-Za-z0-9._/*?-]", "_"),
                own,
                mode.map(m -> "\n  chmod -R " + m + " \"$s\"").orElse(""),
                own,
                folder ? "true || " : "",
                own));
  }

  /// A path as a word of the shell in which `*`, `?` and `[…]` mean what they mean to it.
  private static String pattern(String path) {
    StringBuilder word = new StringBuilder();
    path.replaceFirst("^(\\./)+", "")
        .codePoints()
        .forEach(
            c -> {
              boolean plain =
                  c < 128 && (Character.isLetterOrDigit(c) || "._/-*?[]".indexOf(c) >= 0);
              if (!plain && c < 128) {
                word.append('\\');
              }
              word.appendCodePoint(c);
            });
    return word.toString();
  }

  static String quoted(String text) {
    return "'" + text.replace("'", "'\\''") + "'";
  }

  /// Of the files of each `COPY`, in order.
  List<String> hashes() {
    return List.copyOf(hashes);
  }

  /// The recipe, but for what it is built upon and its shape.
  Map<String, Object> recipe(Optional<String> start, Optional<String> ready) {
    Map<String, Object> recipe = new LinkedHashMap<>();
    List<Object> files = new ArrayList<>();
    for (int i = 0; i < hashes.size(); i++) {
      files.add(Map.of("src", folder(i), "dest", STAGE + "/" + i));
    }
    List<String> commands = new ArrayList<>(run);
    if (!files.isEmpty()) {
      recipe.put("files", files);
      commands.add("rm -rf " + STAGE);
    }
    if (!commands.isEmpty()) {
      recipe.put("run", commands);
    }
    recipe.put("user", account());
    if (!env.isEmpty()) {
      recipe.put("env", env);
    }
    recipe.put("workdir", workdir);
    start.ifPresent(command -> recipe.put("start", List.of("/bin/bash", "-l", "-c", command)));
    if (start.isPresent()) {
      ready.ifPresent(command -> recipe.put("ready", command));
    }
    return recipe;
  }

  private Map<String, Object> account() {
    return switch (user) {
      case "root" -> Map.of("name", "root", "uid", 0, "home", "/root");
      case DEFAULT_USER -> Map.of("name", user, "uid", 1000, "sudo", true);
      default -> throw new E2bError(400, "the last USER must be user or root, not '" + user + "'");
    };
  }

  /// Where the recipe directory has the files of a `COPY`.
  static String folder(int number) {
    return "copy-" + number;
  }
}
