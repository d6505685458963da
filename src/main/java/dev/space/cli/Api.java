package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.wire.Endpoint;
import dev.space.wire.Headers;
import dev.space.wire.RefusedException;
import dev.space.wire.WebSocket;
import dev.space.wire.WireClient;
import dev.space.wire.WireException;
import dev.space.wire.WireException.Fault;
import dev.space.wire.WireRequest;
import dev.space.wire.WireResponse;
import java.io.IOException;
import java.net.URI;
import java.time.Duration;
import java.util.Locale;
import java.util.Optional;
import java.util.UUID;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/// Calls of the HTTP API. Every failure comes out as a [SpaceException].
final class Api {

  /// Longest answer that is read whole.
  private static final int ANSWER_BYTES_MAX = 32 * 1024 * 1024;

  private static final Duration CALL_TIME = Duration.ofSeconds(30);

  /// Streams carry a keep-alive every 15 s; three missed ones mean that nobody is there.
  static final Duration SILENCE = Duration.ofSeconds(50);

  private final WireClient client;
  private final String url;
  private final String key;

  Api(String url, String key) {
    this.url = url;
    this.key = key;
    this.client = new WireClient(endpoint(url));
  }

  private static Endpoint endpoint(String url) {
    try {
      return Endpoint.ofUrl(url);
    } catch (IllegalArgumentException e) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "'" + url + "' is not the URL of a SPACE service")
          .remedy("Set SPACE_URL or --url to something like http://127.0.0.1:8700")
          .toException(e);
    }
  }

  String url() {
    return url;
  }

  JsonNode get(String target) {
    return get(target, CALL_TIME);
  }

  JsonNode get(String target, Duration time) {
    return json(request("GET", target).within(time));
  }

  /// A POST that is safe to repeat: it carries its own key, so it is sent again when its answer got
  /// lost.
  JsonNode post(String target, ObjectNode body) {
    return post(target, body, UUID.randomUUID().toString());
  }

  /// The same with a key of the caller's: whoever asks again with it gets the first answer.
  JsonNode post(String target, ObjectNode body, String idempotencyKey) {
    WireRequest request =
        request("POST", target)
            .header("Idempotency-Key", idempotencyKey)
            .json(Json.compact(body))
            .within(CALL_TIME);
    try {
      return json(request);
    } catch (SpaceException e) {
      if (e.getCause() instanceof WireException lost && lost.fault() == Fault.CUT_OFF) {
        return json(request);
      }
      throw e;
    }
  }

  JsonNode patch(String target, ObjectNode body) {
    return json(request("PATCH", target).json(Json.compact(body)).within(CALL_TIME));
  }

  JsonNode delete(String target) {
    return json(request("DELETE", target).within(CALL_TIME));
  }

  /// Any request, authorised with the API key.
  WireRequest request(String method, String target) {
    return WireRequest.of(method, target).header("Authorization", "Bearer " + key);
  }

  /// Sends a request whose answer is read as it comes; answers that tell of an error are thrown.
  WireResponse open(WireRequest request) {
    return open(client, request);
  }

  /// The same with another address, such as that of the data plane.
  static WireResponse openAt(String base, WireRequest request) {
    return open(new WireClient(endpoint(base)), request);
  }

  private static WireResponse open(WireClient client, WireRequest request) {
    try {
      WireResponse response = client.send(request);
      if (response.status() < 400) {
        return response;
      }
      try (response) {
        throw problem(response.status(), response.text(ANSWER_BYTES_MAX)).toException();
      }
    } catch (WireException e) {
      throw failure(client.endpoint(), e);
    } catch (IOException e) {
      throw Problem.of(ErrorCode.INTERNAL, "What was to be sent could not be read")
          .because(e)
          .toException(e);
    }
  }

  /// Opens a WebSocket at an absolute URL.
  static WebSocket socketAt(String url, Headers headers) {
    Endpoint endpoint = endpoint(url);
    try {
      return new WireClient(endpoint).open(target(url), headers, Optional.of(SILENCE));
    } catch (RefusedException e) {
      throw problem(e.status(), e.body()).toException(e);
    } catch (WireException e) {
      throw failure(endpoint, e);
    } catch (IOException e) {
      throw Problem.of(ErrorCode.INTERNAL, String.valueOf(e.getMessage())).toException(e);
    }
  }

  /// One part of a path or query, percent-encoded.
  static String part(String text) {
    return WireClient.encode(text);
  }

  /// Path and query of an absolute URL.
  static String target(String url) {
    URI uri = URI.create(url);
    String path = uri.getRawPath().isEmpty() ? "/" : uri.getRawPath();
    return uri.getRawQuery() == null ? path : path + "?" + uri.getRawQuery();
  }

  /// Sends a request and reads its answer as JSON; an answer without a body is an empty object.
  JsonNode json(WireRequest request) {
    try (WireResponse response = open(request)) {
      String text = response.text(ANSWER_BYTES_MAX);
      return text.isBlank() ? Json.object() : Json.read(text);
    } catch (WireException e) {
      throw failure(client.endpoint(), e);
    } catch (IOException e) {
      throw Problem.of(ErrorCode.INTERNAL, String.valueOf(e.getMessage())).toException(e);
    } catch (JacksonException e) {
      throw Problem.of(ErrorCode.INTERNAL, url + " answered something that is not JSON")
          .remedy("Check that SPACE_URL leads to a SPACE service.")
          .toException(e);
    }
  }

  static SpaceException failure(Endpoint endpoint, WireException e) {
    return switch (e.fault()) {
      case NOT_CONNECTED ->
          Problem.of(ErrorCode.GUEST_UNREACHABLE, "No SPACE service answers at " + endpoint)
              .because(e)
              .remedy("Start one with ./space serve, or set SPACE_URL or --url to where it is.")
              .toException(e);
      case TIMED_OUT ->
          Problem.of(ErrorCode.DEADLINE_EXCEEDED, String.valueOf(e.getMessage()))
              .remedy("Look at the daemon's log; ./space doctor checks this machine.")
              .toException(e);
      case CUT_OFF ->
          Problem.of(ErrorCode.INTERNAL, "The connection to the service was lost")
              .because(e)
              .remedy("Look at the daemon's log.")
              .toException(e);
      case MALFORMED ->
          Problem.of(ErrorCode.INTERNAL, "The answer of " + endpoint + " can't be understood")
              .because(e)
              .remedy("Check that SPACE_URL leads to a SPACE service of this version.")
              .toException(e);
    };
  }

  /// Reads a problem; what is no problem document is still told as well as it can be.
  static Problem problem(int status, String body) {
    try {
      JsonNode node = Json.read(body);
      if (node.isObject() && node.has("code")) {
        return problem(node);
      }
    } catch (JacksonException e) {
      // Some proxy's page; told below.
    }
    return Problem.of(codeOf("", status), "The service answered with status " + status)
        .because(body.strip().lines().findFirst().orElse("no further word"));
  }

  /// Reads a problem as it stands in answers and operations.
  static Problem problem(JsonNode node) {
    String detail = node.path("detail").asString(node.path("message").asString("unknown error"));
    ErrorCode code = codeOf(node.path("code").asString(""), node.path("status").asInt(500));
    String request = node.path("request_id").asString("");
    Problem problem = Problem.of(code, detail);
    String cause = node.path("cause").asString("");
    if (!cause.isEmpty()) {
      problem = problem.because(cause);
    }
    String remedy = node.path("remedy").asString("");
    if (remedy.isEmpty() && code == ErrorCode.INTERNAL && !request.isEmpty()) {
      remedy = "Look for " + request + " in the daemon's log.";
    }
    return remedy.isEmpty() ? problem : problem.remedy(remedy);
  }

  private static ErrorCode codeOf(String wire, int status) {
    String name = wire.toUpperCase(Locale.ROOT);
    for (ErrorCode code : ErrorCode.values()) {
      if (code.name().equals(name)) {
        return code;
      }
    }
    for (ErrorCode code : ErrorCode.values()) {
      if (code.status() == status) {
        return code;
      }
    }
    return ErrorCode.INTERNAL;
  }
}
