package dev.space.image;

import dev.space.core.error.SpaceException;
import dev.space.core.template.Resources;
import dev.space.core.template.TemplateRef;
import dev.space.image.Recipe.AddedFile;
import dev.space.image.Recipe.Base;
import dev.space.image.Recipe.User;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;

/// Reads `template.yaml`. Strict: a key that isn't known, a wrong type or a value out of its bounds
/// is refused with the key's name and line.
final class RecipeParser {

  static final int RECIPE_BYTES_MAX = 256 * 1024;

  private static final int PACKAGES_MAX = 1000;
  private static final int FILES_MAX = 1000;
  private static final int COMMANDS_MAX = 200;
  private static final int COMMAND_CHARS_MAX = 16 * 1024;
  private static final int ENV_MAX = 200;
  private static final int ENV_CHARS_MAX = 32 * 1024;
  private static final int PATH_CHARS_MAX = 4096;
  private static final int ARGUMENTS_MAX = 256;

  private static final Set<String> RELEASES =
      Set.of("bookworm", "trixie", "forky", "sid", "stable", "testing", "unstable");
  private static final Pattern PACKAGE =
      Pattern.compile("[a-z0-9][a-z0-9+.-]{1,127}(:[a-z0-9]+)?([=][A-Za-z0-9.+:~-]{1,128})?");
  private static final Pattern ACCOUNT = Pattern.compile("[a-z_][a-z0-9_-]{0,31}");
  private static final Pattern OWNER =
      Pattern.compile("([a-z_][a-z0-9_-]{0,31}|[0-9]{1,9})(:([a-z_][a-z0-9_-]{0,31}|[0-9]{1,9}))?");
  private static final Pattern ENV_NAME = Pattern.compile("[A-Za-z_][A-Za-z0-9_]{0,127}");
  private static final Pattern NAME = Pattern.compile("[a-z0-9][a-z0-9._/-]{0,127}");

  private RecipeParser() {}

  /// @throws dev.space.core.error.SpaceException RECIPE_INVALID with the key and line at fault
  static Recipe parse(String yaml) {
    YamlMap top = YamlMap.read("template.yaml", yaml);
    Recipe recipe =
        new Recipe(
            top.text("name", 128).map(v -> matching(top, "name", v, NAME, "a lower-case name")),
            from(top),
            packages(top),
            files(top),
            run(top),
            top.map("user").map(RecipeParser::user),
            env(top),
            top.text("workdir", PATH_CHARS_MAX).map(v -> absolute(top, "workdir", v)),
            start(top),
            top.text("ready", COMMAND_CHARS_MAX).map(v -> notBlank(top, "ready", v)),
            top.map("resources").map(RecipeParser::resources).orElse(Resources.DEFAULT),
            top.integer("warm", 0, 64).orElse(0));
    top.refuseOthers();
    if (recipe.ready().isPresent() && recipe.start().isEmpty()) {
      throw top.fault("ready", "is only of use with 'start'");
    }
    return recipe;
  }

  private static Base from(YamlMap top) {
    Optional<String> text = top.text("from", 300);
    if (text.isEmpty()) {
      return new Base.Release(Optional.empty());
    }
    String from = text.get();
    if (RELEASES.contains(from)) {
      return new Base.Release(Optional.of(from));
    }
    if (!from.contains(":")) {
      throw top.fault(
          "from",
          "'"
              + from
              + "' is no Debian release ("
              + String.join(", ", RELEASES.stream().sorted().toList())
              + "); write '"
              + from
              + ":latest' if a template is meant");
    }
    try {
      return new Base.Parent(TemplateRef.parse(from));
    } catch (SpaceException e) {
      throw top.fault("from", e.problem().detail());
    }
  }

  private static List<String> packages(YamlMap top) {
    List<String> packages = top.texts("packages", PACKAGES_MAX, 256);
    packages.forEach(p -> matching(top, "packages", p, PACKAGE, "the name of a Debian package"));
    return packages;
  }

  private static List<AddedFile> files(YamlMap top) {
    List<AddedFile> files = new ArrayList<>();
    for (YamlMap file : top.maps("files", FILES_MAX)) {
      String src = file.required("src", file.text("src", PATH_CHARS_MAX));
      String dest =
          absolute(file, "dest", file.required("dest", file.text("dest", PATH_CHARS_MAX)));
      if (src.startsWith("/") || List.of(src.split("/")).contains("..") || src.isBlank()) {
        throw file.fault("src", "'" + src + "' must be a path inside the recipe directory");
      }
      String owner = file.text("owner", 80).orElse("root:root");
      matching(file, "owner", owner, OWNER, "user or user:group");
      files.add(new AddedFile(src, dest, mode(file), owner));
      file.refuseOthers();
    }
    return List.copyOf(files);
  }

  private static Optional<Integer> mode(YamlMap file) {
    return file.text("mode", 6)
        .map(
            text -> {
              String digits = text.startsWith("0o") ? text.substring(2) : text;
              if (!digits.matches("[0-7]{3,4}")) {
                throw file.fault(
                    "mode", "'" + text + "' must be 3 or 4 octal digits, such as 0644");
              }
              return Integer.parseInt(digits, 8);
            });
  }

  private static List<String> run(YamlMap top) {
    List<String> commands = top.texts("run", COMMANDS_MAX, COMMAND_CHARS_MAX);
    commands.forEach(c -> notBlank(top, "run", c));
    return commands;
  }

  private static User user(YamlMap user) {
    String name = user.required("name", user.text("name", 32));
    matching(user, "name", name, ACCOUNT, "a Linux account name");
    int uid = user.integer("uid", 0, 60000).orElse(name.equals("root") ? 0 : 1000);
    if (name.equals("root") != (uid == 0)) {
      throw user.fault("uid", "root, and root alone, has uid 0");
    }
    String home =
        user.text("home", PATH_CHARS_MAX)
            .map(v -> absolute(user, "home", v))
            .orElse(uid == 0 ? "/root" : "/home/" + name);
    boolean sudo = user.bool("sudo").orElse(false);
    user.refuseOthers();
    return new User(name, uid, home, sudo);
  }

  private static Map<String, String> env(YamlMap top) {
    Map<String, String> env = new LinkedHashMap<>();
    Optional<YamlMap> given = top.map("env");
    if (given.isPresent()) {
      YamlMap map = given.get();
      if (map.keys().size() > ENV_MAX) {
        throw top.fault("env", "has more than " + ENV_MAX + " entries");
      }
      for (String key : map.keys()) {
        matching(map, key, key, ENV_NAME, "the name of an environment variable");
        env.put(key, map.required(key, map.text(key, ENV_CHARS_MAX)));
      }
    }
    return Map.copyOf(env);
  }

  private static Optional<List<String>> start(YamlMap top) {
    if (top.isText("start")) {
      return top.text("start", COMMAND_CHARS_MAX)
          .map(v -> List.of("/bin/sh", "-c", notBlank(top, "start", v)));
    }
    List<String> argv = top.texts("start", ARGUMENTS_MAX, COMMAND_CHARS_MAX);
    if (top.has("start") && argv.isEmpty()) {
      throw top.fault("start", "is empty");
    }
    return argv.isEmpty() ? Optional.empty() : Optional.of(argv);
  }

  private static Resources resources(YamlMap map) {
    Resources d = Resources.DEFAULT;
    Resources resources =
        new Resources(
            map.integer("vcpus", 1, 32).orElse(d.vcpus()),
            map.integer("memory_mib", 128, 1_048_576).orElse(d.memoryMib()),
            map.integer("disk_mib", 64, 1_048_576).orElse(d.diskMib()));
    map.refuseOthers();
    return resources;
  }

  private static String matching(
      YamlMap map, String key, String value, Pattern pattern, String what) {
    if (!pattern.matcher(value).matches()) {
      throw map.fault(key, "'" + value + "' must be " + what);
    }
    return value;
  }

  private static String absolute(YamlMap map, String key, String path) {
    if (!path.startsWith("/") || List.of(path.split("/")).contains("..") || path.contains("\n")) {
      throw map.fault(key, "'" + path + "' must be an absolute path without '..'");
    }
    return path;
  }

  private static String notBlank(YamlMap map, String key, String text) {
    if (text.isBlank()) {
      throw map.fault(key, "is empty");
    }
    if (text.indexOf('\0') >= 0) {
      throw map.fault(key, "has a zero character");
    }
    return text;
  }
}
