package dev.space.http;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.util.LinkedHashMap;
import java.util.Map;

/// Errors as RFC 9457 objects.
public final class ProblemJson {
  public static final String CONTENT_TYPE = "application/problem+json";

  private ProblemJson() {}

  /// The object of an error: type, title, status, code, detail, cause, remedy, request_id.
  public static Map<String, Object> of(Problem problem, String requestId) {
    return of(problem, problem.code().status(), requestId);
  }

  /// The same with the status that is really answered.
  public static Map<String, Object> of(Problem problem, int status, String requestId) {
    var json = new LinkedHashMap<String, Object>();
    json.put("type", "urn:space:error:" + problem.code().wire());
    json.put("title", title(problem.code()));
    json.put("status", status);
    json.put("code", problem.code().wire());
    json.put("detail", problem.detail());
    problem.cause().ifPresent(cause -> json.put("cause", cause));
    problem.remedy().ifPresent(remedy -> json.put("remedy", remedy));
    json.put("request_id", requestId);
    return json;
  }

  static void send(Exchange exchange, Problem problem) {
    exchange
        .status(problem.code().status())
        .header("Cache-Control", "no-store")
        .send(CONTENT_TYPE, Json.bytes(of(problem, exchange.requestId())));
  }

  private static String title(ErrorCode code) {
    String words = code.wire().replace('_', ' ');
    return Character.toUpperCase(words.charAt(0)) + words.substring(1);
  }
}
