package dev.space.cli;

import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

/// JSON as trees: binding to classes would double the time a short command takes.
final class Json {

  private static final JsonMapper MAPPER = JsonMapper.builder().build();

  private Json() {}

  static JsonNode read(String text) {
    return MAPPER.readTree(text);
  }

  static ObjectNode object() {
    return JsonNodeFactory.instance.objectNode();
  }

  static String compact(JsonNode node) {
    return node.toString();
  }

  static String pretty(JsonNode node) {
    return node.toPrettyString();
  }
}
