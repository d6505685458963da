package dev.space.wire;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// Header fields in the order they came. Names compare without regard to case.
public final class Headers {

  /// One field.
  public record Field(String name, String value) {}

  /// No field at all.
  public static final Headers NONE = new Headers(List.of());

  private final List<Field> fields;

  Headers(List<Field> fields) {
    this.fields = List.copyOf(fields);
  }

  /// These fields and one more.
  ///
  /// @throws IllegalArgumentException for characters that would break the message apart
  public Headers with(String name, String value) {
    for (int i = 0; i < name.length(); i++) {
      char c = name.charAt(i);
      if (c <= ' ' || c >= 0x7f || c == ':') {
        throw new IllegalArgumentException("illegal character in the header name '" + name + "'");
      }
    }
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      if ((c < ' ' && c != '\t') || c == 0x7f || c > 0xff) {
        throw new IllegalArgumentException("illegal character in the value of " + name);
      }
    }
    List<Field> more = new ArrayList<>(fields);
    more.add(new Field(name, value));
    return new Headers(more);
  }

  /// The first field of this name.
  public Optional<String> first(String name) {
    for (Field field : fields) {
      if (field.name().equalsIgnoreCase(name)) {
        return Optional.of(field.value());
      }
    }
    return Optional.empty();
  }

  /// Whether a field of this name lists a token, as `Connection: close` does.
  boolean lists(String name, String token) {
    for (Field field : fields) {
      if (field.name().equalsIgnoreCase(name)) {
        for (String word : field.value().split(",")) {
          if (word.strip().equalsIgnoreCase(token)) {
            return true;
          }
        }
      }
    }
    return false;
  }

  /// All fields in their order.
  public List<Field> all() {
    return fields;
  }
}
