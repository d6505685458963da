package dev.space.api;

import com.networknt.schema.Schema;
import com.networknt.schema.SchemaRegistry;
import com.networknt.schema.SpecificationVersion;
import dev.space.http.Json;
import java.io.IOException;
import java.io.InputStream;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;
import tools.jackson.dataformat.yaml.YAMLMapper;

/// Holds requests and answers against `openapi.yaml`.
public final class ContractCheck {
  private static final Set<String> METHODS = Set.of("get", "post", "put", "patch", "delete");

  private final JsonNode contract;
  private final SchemaRegistry registry =
      SchemaRegistry.withDefaultDialect(SpecificationVersion.DRAFT_2020_12);
  private final Map<JsonNode, Schema> schemas = new HashMap<>();

  public ContractCheck() {
    try (InputStream in = ContractCheck.class.getResourceAsStream("/openapi.yaml")) {
      contract = YAMLMapper.builder().build().readTree(in);
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  /// One request as it was sent.
  public record Sent(String method, String target, Map<String, String> headers, byte[] body) {}

  /// One answer as it was received; the body is empty for streams.
  public record Received(int status, Map<String, String> headers, byte[] body) {}

  /// The control plane's operations as `METHOD /template`.
  public Set<String> controlPlane() {
    return operations(false);
  }

  /// The operations that name the data plane as their server.
  public Set<String> dataPlane() {
    return operations(true);
  }

  private Set<String> operations(boolean data) {
    var all = new TreeSet<String>();
    contract
        .path("paths")
        .forEachEntry(
            (path, item) ->
                item.forEachEntry(
                    (method, operation) -> {
                      if (METHODS.contains(method) && operation.has("servers") == data) {
                        all.add(method.toUpperCase(Locale.ROOT) + " " + path);
                      }
                    }));
    return all;
  }

  public JsonNode contract() {
    return contract;
  }

  /// What of the exchange the contract doesn't allow; empty when all is well. A request that was
  /// answered with a 4xx may break the contract, its answer may not.
  public List<String> faults(Sent sent, Received received) {
    var faults = new ArrayList<String>();
    String path = sent.target().split("\\?", 2)[0];
    Optional<String> template = template(path);
    if (template.isEmpty()) {
      if (received.status() != 404) {
        faults.add("the contract has no path " + path + " but it answered " + received.status());
      }
      problem(received, faults);
      return faults;
    }
    String method = sent.method().equals("HEAD") ? "get" : sent.method().toLowerCase(Locale.ROOT);
    JsonNode item = contract.path("paths").path(template.get());
    JsonNode operation = item.path(method);
    if (operation.isMissingNode()) {
      if (received.status() != 405 && !sent.method().equals("OPTIONS")) {
        faults.add(sent.method() + " is not in the contract of " + template.get());
      }
      return faults;
    }
    if (received.status() < 400) {
      request(sent, item, operation, faults);
    }
    answer(sent, received, operation, faults);
    return faults;
  }

  private void request(Sent sent, JsonNode item, JsonNode operation, List<String> faults) {
    Map<String, JsonNode> parameters = new LinkedHashMap<>();
    for (JsonNode list : List.of(item.path("parameters"), operation.path("parameters"))) {
      list.forEach(
          p -> {
            JsonNode resolved = resolve(p);
            parameters.put(
                resolved.path("in").asString() + " " + resolved.path("name").asString(), resolved);
          });
    }
    Map<String, List<String>> query = query(sent.target());
    query.forEach(
        (name, values) -> {
          JsonNode parameter = parameters.get("query " + name);
          if (parameter == null) {
            faults.add("the query parameter " + name + " is not in the contract");
          } else {
            values.forEach(v -> text(parameter.path("schema"), v, "query " + name, faults));
          }
        });
    parameters.forEach(
        (key, parameter) -> {
          boolean missing =
              parameter.path("in").asString().equals("query")
                  && parameter.path("required").asBoolean(false)
                  && !query.containsKey(parameter.path("name").asString());
          if (missing) {
            faults.add("the required " + key + " is missing");
          }
        });
    if (sent.body().length > 0) {
      String type = mediaType(sent.headers());
      JsonNode content = operation.path("requestBody").path("content");
      JsonNode media = content.has(type) ? content.path(type) : content.path("*/*");
      if (media.isMissingNode()) {
        faults.add("the contract takes no body of type " + type);
      } else if (type.equals("application/json")) {
        validate(media.path("schema"), Json.mapper().readTree(sent.body()), "request", faults);
      }
    } else if (operation.path("requestBody").path("required").asBoolean(false)) {
      faults.add("the required body is missing");
    }
  }

  private void answer(Sent sent, Received received, JsonNode operation, List<String> faults) {
    if (received.status() >= 400) {
      problem(received, faults);
      return;
    }
    JsonNode answer = operation.path("responses").path(Integer.toString(received.status()));
    if (answer.isMissingNode()) {
      faults.add("the contract has no answer " + received.status());
      return;
    }
    JsonNode resolved = resolve(answer);
    JsonNode content = resolved.path("content");
    String type = mediaType(received.headers());
    if (content.isMissingNode()) {
      if (received.body().length > 0) {
        faults.add("the contract has no body for " + received.status());
      }
      return;
    }
    if (!content.has(type)) {
      faults.add("the contract has no answer of type " + type);
    } else if (type.equals("application/json") && !sent.method().equals("HEAD")) {
      validate(
          content.path(type).path("schema"),
          Json.mapper().readTree(received.body()),
          "answer",
          faults);
    }
    resolved
        .path("headers")
        .forEachEntry(
            (name, _) -> {
              if (!received.headers().containsKey(name.toLowerCase(Locale.ROOT))) {
                faults.add("the answer lacks the header " + name);
              }
            });
  }

  private void problem(Received received, List<String> faults) {
    if (!mediaType(received.headers()).equals("application/problem+json")) {
      faults.add(received.status() + " is no problem but " + mediaType(received.headers()));
      return;
    }
    if (received.body().length == 0) {
      return;
    }
    JsonNode problem = Json.mapper().readTree(received.body());
    validate(
        contract.path("components").path("schemas").path("Problem"), problem, "problem", faults);
    if (problem.path("status").asInt() != received.status()) {
      faults.add("the problem says " + problem.path("status") + ", not " + received.status());
    }
    if (!problem.path("request_id").asString("").equals(received.headers().get("x-request-id"))) {
      faults.add("the problem and the header differ in the request id");
    }
  }

  /// Holds a JSON text against a schema of the contract.
  public List<String> against(String schema, String json) {
    var faults = new ArrayList<String>();
    validate(
        contract.path("components").path("schemas").path(schema),
        Json.mapper().readTree(json),
        schema,
        faults);
    return faults;
  }

  private void validate(JsonNode schema, JsonNode value, String where, List<String> faults) {
    compiled(schema)
        .validate(value)
        .forEach(e -> faults.add(where + " " + e.getInstanceLocation() + ": " + e.getMessage()));
  }

  private void text(JsonNode schema, String value, String where, List<String> faults) {
    JsonNode of = resolve(schema);
    JsonNode single = of.path("type").asString("").equals("array") ? of.path("items") : of;
    JsonNode typed =
        switch (resolve(single).path("type").asString("")) {
          case "integer", "boolean" -> Json.mapper().readTree(value);
          default -> Json.mapper().getNodeFactory().stringNode(value);
        };
    validate(single, typed, where, faults);
  }

  /// A schema of the contract as a document of its own, so that its references resolve.
  private Schema compiled(JsonNode schema) {
    return schemas.computeIfAbsent(
        schema,
        s -> {
          ObjectNode document = Json.mapper().createObjectNode();
          document.set("components", contract.path("components"));
          document.putArray("allOf").add(s);
          return registry.getSchema(document);
        });
  }

  private JsonNode resolve(JsonNode node) {
    String ref = node.path("$ref").asString("");
    return ref.isEmpty() ? node : contract.at(ref.substring(1));
  }

  private Optional<String> template(String path) {
    String[] segments = path.split("/", -1);
    String best = null;
    for (String template : contract.path("paths").propertyNames()) {
      String[] parts = template.split("/", -1);
      boolean matches = parts.length == segments.length;
      for (int i = 0; matches && i < parts.length; i++) {
        matches = parts[i].startsWith("{") ? !segments[i].isEmpty() : parts[i].equals(segments[i]);
      }
      if (matches && (best == null || !template.contains("{"))) {
        best = template;
      }
    }
    return Optional.ofNullable(best);
  }

  private static Map<String, List<String>> query(String target) {
    var query = new LinkedHashMap<String, List<String>>();
    String[] halves = target.split("\\?", 2);
    if (halves.length == 2) {
      for (String pair : halves[1].split("&")) {
        String[] parts = pair.split("=", 2);
        query
            .computeIfAbsent(decoded(parts[0]), _ -> new ArrayList<>())
            .add(parts.length == 2 ? decoded(parts[1]) : "");
      }
    }
    return query;
  }

  private static String decoded(String text) {
    return URLDecoder.decode(text, StandardCharsets.UTF_8);
  }

  private static String mediaType(Map<String, String> headers) {
    return headers.getOrDefault("content-type", "").split(";")[0].strip();
  }
}
