package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.JsonNodeFactory;

/// Prints results as tables for people or as JSON for programs.
final class Printer {

  /// How results are printed.
  enum Format {
    TABLE,
    JSON
  }

  /// A column of a table.
  record Column(String title, Function<JsonNode, String> cell) {

    /// A column that shows one field; absent ones are a dash.
    static Column of(String title, String field) {
      return new Column(title, node -> text(node, field));
    }
  }

  private final OutputStream out;
  private final Format format;

  Printer(OutputStream out, Format format) {
    this.out = out;
    this.format = format;
  }

  Format format() {
    return format;
  }

  /// A field as text. A path is written with slashes.
  static String text(JsonNode node, String field) {
    JsonNode at = node;
    for (String part : field.split("/")) {
      at = at.path(part);
    }
    if (at.isMissingNode() || at.isNull()) {
      return "-";
    }
    return at.isContainer() ? Json.compact(at) : at.asString();
  }

  /// The same for a terminal: control characters of others' texts must not reach it.
  static String printable(JsonNode node, String field) {
    return printable(text(node, field));
  }

  /// A list.
  void list(List<JsonNode> rows, List<Column> columns) {
    if (format == Format.JSON) {
      ArrayNode array = JsonNodeFactory.instance.arrayNode();
      rows.forEach(array::add);
      line(Json.pretty(array));
      return;
    }
    List<List<String>> cells = new ArrayList<>();
    cells.add(columns.stream().map(Column::title).toList());
    for (JsonNode row : rows) {
      cells.add(columns.stream().map(column -> printable(column.cell().apply(row))).toList());
    }
    int[] width = new int[columns.size()];
    for (List<String> row : cells) {
      for (int i = 0; i < width.length; i++) {
        width[i] = Math.max(width[i], row.get(i).length());
      }
    }
    StringBuilder text = new StringBuilder();
    for (List<String> row : cells) {
      for (int i = 0; i < width.length; i++) {
        text.append(row.get(i));
        if (i < width.length - 1) {
          text.append(" ".repeat(width[i] - row.get(i).length() + 3));
        }
      }
      text.append('\n');
    }
    raw(text.toString());
  }

  /// One thing: its fields, one a line.
  void one(JsonNode node) {
    if (format == Format.JSON) {
      line(Json.pretty(node));
      return;
    }
    int width = node.propertyNames().stream().mapToInt(String::length).max().orElse(0);
    StringBuilder text = new StringBuilder();
    for (String name : node.propertyNames()) {
      JsonNode value = node.path(name);
      if (!value.isNull() && !(value.isContainer() && value.isEmpty())) {
        text.append(name)
            .append(" ".repeat(width - name.length() + 2))
            .append(printable(node, name))
            .append('\n');
      }
    }
    raw(text.toString());
  }

  /// The result of a change: the whole answer as JSON, else one word such as an id.
  void result(JsonNode answer, String word) {
    line(format == Format.JSON ? Json.pretty(answer) : word);
  }

  void line(String text) {
    raw(text + "\n");
  }

  private static String printable(String text) {
    return text.replaceAll("\\p{Cntrl}", "?");
  }

  private void raw(String text) {
    try {
      out.write(text.getBytes(StandardCharsets.UTF_8));
      out.flush();
    } catch (IOException e) {
      throw Problem.of(ErrorCode.INTERNAL, "Standard output can't be written to")
          .because(e)
          .toException(e);
    }
  }
}
