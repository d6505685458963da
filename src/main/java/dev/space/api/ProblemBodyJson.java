package dev.space.api;

import dev.space.core.error.Problem;
import java.util.Optional;

/// An error that is part of a record: why an operation failed, why a sandbox stopped.
record ProblemBodyJson(
    String code, int status, String detail, Optional<String> cause, Optional<String> remedy) {
  static ProblemBodyJson of(Problem problem) {
    return new ProblemBodyJson(
        problem.code().wire(),
        problem.code().status(),
        problem.detail(),
        problem.cause(),
        problem.remedy());
  }
}
