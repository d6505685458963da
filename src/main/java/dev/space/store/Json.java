package dev.space.store;

import java.util.List;
import java.util.Map;
import tools.jackson.core.type.TypeReference;
import tools.jackson.databind.json.JsonMapper;

/// JSON columns.
final class Json {

  private static final JsonMapper MAPPER = JsonMapper.builder().build();
  private static final TypeReference<Map<String, String>> MAP = new TypeReference<>() {};
  private static final TypeReference<List<String>> LIST = new TypeReference<>() {};

  private Json() {}

  static String write(Object value) {
    return MAPPER.writeValueAsString(value);
  }

  static <T> T read(String json, Class<T> type) {
    return MAPPER.readValue(json, type);
  }

  static Map<String, String> map(String json) {
    return Map.copyOf(MAPPER.readValue(json, MAP));
  }

  static List<String> list(String json) {
    return List.copyOf(MAPPER.readValue(json, LIST));
  }
}
