package dev.space.http;

import dev.space.core.error.Problem;

/// Writes an error as an answer. The exchange is not committed and has no body yet; headers a
/// handler set before it failed are gone, but for those of [Exchange#errorHeader].
@FunctionalInterface
public interface ErrorRenderer {
  void render(Exchange exchange, Problem problem);

  /// `application/problem+json`, as the native API promises it.
  ErrorRenderer PROBLEM_JSON = ProblemJson::send;
}
