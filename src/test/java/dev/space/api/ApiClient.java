package dev.space.api;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.http.Json;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import tools.jackson.databind.JsonNode;

/// Calls the API and holds every request and answer against the contract.
public final class ApiClient implements AutoCloseable {
  private final HttpClient client = HttpClient.newHttpClient();
  private final String base;
  private final String key;
  private final ContractCheck contract;

  public ApiClient(String base, String key, ContractCheck contract) {
    this.base = base;
    this.key = key;
    this.contract = contract;
  }

  /// An answer with its JSON.
  public record Answer(int status, Map<String, String> headers, String body) {
    public JsonNode json() {
      return Json.mapper().readTree(body);
    }

    public String at(String field) {
      return json().path(field).asString("");
    }
  }

  public Answer get(String target) {
    return call("GET", target, Map.of(), "");
  }

  public Answer delete(String target) {
    return call("DELETE", target, Map.of(), "");
  }

  public Answer post(String target, String json) {
    return call("POST", target, Map.of("content-type", "application/json"), json);
  }

  public Answer call(String method, String target, Map<String, String> more, String body) {
    var headers = new LinkedHashMap<String, String>();
    if (!key.isEmpty()) {
      headers.put("authorization", "Bearer " + key);
    }
    headers.putAll(more);
    byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create(base + target))
            .timeout(Duration.ofSeconds(20))
            .method(
                method,
                bytes.length == 0
                    ? HttpRequest.BodyPublishers.noBody()
                    : HttpRequest.BodyPublishers.ofByteArray(bytes));
    headers.forEach(request::header);
    HttpResponse<byte[]> answer;
    try {
      answer = client.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
    var received = new HashMap<String, String>();
    answer
        .headers()
        .map()
        .forEach((name, values) -> received.put(name.toLowerCase(Locale.ROOT), values.getFirst()));
    assertThat(
            contract.faults(
                new ContractCheck.Sent(method, target, headers, bytes),
                new ContractCheck.Received(answer.statusCode(), received, answer.body())))
        .as("the contract of %s %s", method, target)
        .isEmpty();
    return new Answer(
        answer.statusCode(), received, new String(answer.body(), StandardCharsets.UTF_8));
  }

  @Override
  public void close() {
    client.close();
  }
}
