package dev.space.e2b;

import dev.space.core.error.SpaceException;
import dev.space.core.operation.IdempotencyKey;
import dev.space.http.Exchange;
import dev.space.http.Json;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.regex.Pattern;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.MissingNode;

/// A JSON request body of the control plane. Unknown fields are let pass, as newer SDKs send them;
/// known ones must have their type.
final class Body {

  private static final int BYTES_MAX = 1024 * 1024;
  private static final Pattern KEY = Pattern.compile("[\\x21-\\x7e]{1,255}");
  private static final int SECONDS_MAX = 30 * 86_400;

  private final JsonNode root;
  private final Optional<IdempotencyKey> key;

  private Body(JsonNode root, Optional<IdempotencyKey> key) {
    this.root = root;
    this.key = key;
  }

  /// Reads the body; an empty one is `{}`.
  static Body read(Exchange exchange) {
    byte[] bytes = exchange.bodyBytes(BYTES_MAX);
    try {
      JsonNode root = bytes.length == 0 ? MissingNode.getInstance() : Json.tree(bytes);
      if (!root.isObject() && !root.isMissingNode()) {
        throw new E2bError(400, "the body must be a JSON object");
      }
      return new Body(root, key(exchange, bytes));
    } catch (JacksonException e) {
      throw new E2bError(400, "the body is not valid JSON: " + e.getOriginalMessage());
    } catch (SpaceException e) {
      throw new E2bError(400, e.problem().oneLine());
    }
  }

  /// The request's `Idempotency-Key`, bound to its path and body.
  Optional<IdempotencyKey> key() {
    return key;
  }

  private static Optional<IdempotencyKey> key(Exchange exchange, byte[] body) {
    Optional<String> key = exchange.header("Idempotency-Key");
    if (key.isEmpty()) {
      return Optional.empty();
    }
    if (!KEY.matcher(key.get()).matches()) {
      throw new E2bError(400, "Idempotency-Key must be 1 to 255 printable ASCII characters");
    }
    try {
      MessageDigest hash = MessageDigest.getInstance("SHA-256");
      hash.update((exchange.method() + " " + exchange.rawPath()).getBytes(StandardCharsets.UTF_8));
      hash.update((byte) 0);
      String fingerprint = HexFormat.of().formatHex(hash.digest(body));
      return Optional.of(new IdempotencyKey(key.get(), fingerprint));
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError("every JDK has SHA-256", e);
    }
  }

  private Optional<JsonNode> field(String name) {
    JsonNode node = root.path(name);
    return node.isMissingNode() || node.isNull() ? Optional.empty() : Optional.of(node);
  }

  Optional<String> text(String name) {
    return field(name)
        .map(
            node -> {
              if (!node.isString()) {
                throw wrong(name, "a string");
              }
              return node.stringValue();
            });
  }

  Optional<Boolean> flag(String name) {
    return field(name)
        .map(
            node -> {
              if (!node.isBoolean()) {
                throw wrong(name, "true or false");
              }
              return node.booleanValue();
            });
  }

  OptionalInt number(String name, int min, int max) {
    Optional<JsonNode> node = field(name);
    if (node.isEmpty()) {
      return OptionalInt.empty();
    }
    if (!node.get().isIntegralNumber() || !node.get().canConvertToInt()) {
      throw wrong(name, "a whole number");
    }
    int value = node.get().intValue();
    if (value < min || value > max) {
      throw wrong(name, "between " + min + " and " + max);
    }
    return OptionalInt.of(value);
  }

  /// A time in whole seconds.
  Optional<Duration> seconds(String name, int min) {
    OptionalInt value = number(name, min, SECONDS_MAX);
    return value.isEmpty() ? Optional.empty() : Optional.of(Duration.ofSeconds(value.getAsInt()));
  }

  Map<String, String> strings(String name) {
    Optional<JsonNode> node = field(name);
    if (node.isEmpty()) {
      return Map.of();
    }
    if (!node.get().isObject()) {
      throw wrong(name, "an object of strings");
    }
    Map<String, String> found = new LinkedHashMap<>();
    for (Map.Entry<String, JsonNode> entry : node.get().properties()) {
      if (!entry.getValue().isString()) {
        throw wrong(name + "." + entry.getKey(), "a string");
      }
      found.put(entry.getKey(), entry.getValue().stringValue());
    }
    return found;
  }

  /// An inner object, `{}` when it is absent.
  Body inner(String name) {
    Optional<JsonNode> node = field(name);
    if (node.isPresent() && !node.get().isObject()) {
      throw wrong(name, "an object");
    }
    return new Body(node.orElse(MissingNode.getInstance()), Optional.empty());
  }

  /// The field as it stands, for settings that are kept but not read.
  Optional<JsonNode> raw(String name) {
    return field(name);
  }

  private static E2bError wrong(String name, String rule) {
    return new E2bError(400, "'" + name + "' must be " + rule);
  }
}
