package dev.space.image;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.api.lowlevel.Compose;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;
import org.snakeyaml.engine.v2.nodes.MappingNode;
import org.snakeyaml.engine.v2.nodes.Node;
import org.snakeyaml.engine.v2.nodes.NodeTuple;
import org.snakeyaml.engine.v2.nodes.ScalarNode;
import org.snakeyaml.engine.v2.nodes.SequenceNode;
import org.snakeyaml.engine.v2.nodes.Tag;

/// A mapping of a YAML document that knows the line of each key and which keys were asked for.
final class YamlMap {

  private final String file;
  private final String path;
  private final int line;
  private final Map<String, Node> values = new LinkedHashMap<>();
  private final Map<String, Integer> lines = new LinkedHashMap<>();
  private final Set<String> asked = new HashSet<>();

  private YamlMap(String file, String path, MappingNode node) {
    this.file = file;
    this.path = path;
    this.line = lineOf(node);
    for (NodeTuple entry : node.getValue()) {
      if (!(entry.getKeyNode() instanceof ScalarNode key)) {
        throw fault(file, lineOf(entry.getKeyNode()), path, "has a key that is no text");
      }
      lines.put(key.getValue(), lineOf(key));
      if (values.put(key.getValue(), entry.getValueNode()) != null) {
        throw fault(key.getValue(), "stands there twice");
      }
    }
  }

  /// Reads a document whose top is a mapping.
  ///
  /// @throws SpaceException RECIPE_INVALID with the line at fault
  static YamlMap read(String file, String yaml) {
    LoadSettings settings =
        LoadSettings.builder()
            .setLabel(file)
            .setMaxAliasesForCollections(0)
            .setAllowDuplicateKeys(true)
            .setCodePointLimit(RecipeParser.RECIPE_BYTES_MAX)
            .build();
    Optional<Node> top;
    try {
      top = new Compose(settings).composeString(yaml);
    } catch (YamlEngineException e) {
      throw Problem.of(ErrorCode.RECIPE_INVALID, file + " is no valid YAML")
          .because(e)
          .toException(e);
    }
    if (top.isEmpty()) {
      return new YamlMap(
          file,
          "",
          new MappingNode(Tag.MAP, List.of(), org.snakeyaml.engine.v2.common.FlowStyle.BLOCK));
    }
    if (!(top.get() instanceof MappingNode map)) {
      throw fault(file, lineOf(top.get()), "", "must be a list of 'key: value' lines");
    }
    return new YamlMap(file, "", map);
  }

  List<String> keys() {
    return List.copyOf(values.keySet());
  }

  boolean has(String key) {
    return node(key).isPresent();
  }

  boolean isText(String key) {
    return node(key).filter(ScalarNode.class::isInstance).isPresent();
  }

  private Optional<Node> node(String key) {
    asked.add(key);
    return Optional.ofNullable(values.get(key))
        .filter(n -> !(n instanceof ScalarNode s && s.getTag().equals(Tag.NULL)));
  }

  Optional<String> text(String key, int charsMax) {
    return node(key).map(n -> scalar(key, n, charsMax));
  }

  private String scalar(String key, Node node, int charsMax) {
    if (!(node instanceof ScalarNode scalar)) {
      throw fault(
          file, lineOf(node), nested(key), "must be a text; put it in quotes if it has ': '");
    }
    if (scalar.getValue().length() > charsMax) {
      throw fault(key, "is longer than " + charsMax + " characters");
    }
    return scalar.getValue();
  }

  List<String> texts(String key, int countMax, int charsMax) {
    List<String> texts = new ArrayList<>();
    for (Node item : items(key, countMax)) {
      texts.add(scalar(key, item, charsMax));
    }
    return List.copyOf(texts);
  }

  List<YamlMap> maps(String key, int countMax) {
    List<YamlMap> maps = new ArrayList<>();
    for (Node item : items(key, countMax)) {
      if (!(item instanceof MappingNode map)) {
        throw fault(file, lineOf(item), nested(key), "must be a list of mappings");
      }
      maps.add(new YamlMap(file, nested(key) + "[" + maps.size() + "]", map));
    }
    return List.copyOf(maps);
  }

  private List<Node> items(String key, int countMax) {
    Optional<Node> node = node(key);
    if (node.isEmpty()) {
      return List.of();
    }
    if (!(node.get() instanceof SequenceNode sequence)) {
      throw fault(key, "must be a list");
    }
    if (sequence.getValue().size() > countMax) {
      throw fault(key, "has more than " + countMax + " entries");
    }
    return sequence.getValue();
  }

  Optional<YamlMap> map(String key) {
    return node(key)
        .map(
            n -> {
              if (!(n instanceof MappingNode map)) {
                throw fault(key, "must be a mapping");
              }
              return new YamlMap(file, nested(key), map);
            });
  }

  Optional<Integer> integer(String key, int least, int most) {
    return text(key, 20)
        .map(
            text -> {
              try {
                int value = Integer.parseInt(text);
                if (value >= least && value <= most) {
                  return value;
                }
              } catch (NumberFormatException _) {
                // Said below, as for a number out of its bounds.
              }
              throw fault(
                  key, "'" + text + "' must be a whole number from " + least + " to " + most);
            });
  }

  Optional<Boolean> bool(String key) {
    return text(key, 20)
        .map(
            text ->
                switch (text) {
                  case "true" -> true;
                  case "false" -> false;
                  default -> throw fault(key, "'" + text + "' must be true or false");
                });
  }

  String required(String key, Optional<String> value) {
    return value.orElseThrow(() -> fault(key, "is missing"));
  }

  /// Refuses keys that nobody asked for.
  void refuseOthers() {
    for (String key : values.keySet()) {
      if (!asked.contains(key)) {
        throw fault(
            key,
            "is no known key; known are " + String.join(", ", asked.stream().sorted().toList()));
      }
    }
  }

  /// The error that names a key and its line.
  SpaceException fault(String key, String what) {
    return fault(file, lines.getOrDefault(key, line), nested(key), what);
  }

  private String nested(String key) {
    return path.isEmpty() ? key : path + "." + key;
  }

  private static SpaceException fault(String file, int line, String path, String what) {
    return Problem.of(
            ErrorCode.RECIPE_INVALID,
            file
                + " line "
                + line
                + ": "
                + (path.isEmpty() ? "the file" : "'" + path + "'")
                + " "
                + what)
        .remedy("See docs/templates.md for every key of a recipe.")
        .toException();
  }

  private static int lineOf(Node node) {
    return node.getStartMark().map(mark -> mark.getLine() + 1).orElse(1);
  }
}
