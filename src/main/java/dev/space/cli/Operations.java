package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.time.Duration;
import tools.jackson.databind.JsonNode;

/// Waits for operations.
final class Operations {

  /// How long one poll waits: shorter on a terminal, where its progress is shown.
  private static final Duration POLL_SHOWN = Duration.ofSeconds(1);

  private static final Duration POLL_QUIET = Duration.ofSeconds(30);
  private static final Duration MARGIN = Duration.ofSeconds(15);

  private Operations() {}

  /// Waits for the end of an operation as a call answered it.
  ///
  /// @return the operation, which has succeeded
  /// @throws dev.space.core.error.SpaceException the operation's own error when it failed
  static JsonNode await(Api api, JsonNode accepted, Progress progress, boolean shown) {
    JsonNode operation = accepted;
    Duration poll = shown ? POLL_SHOWN : POLL_QUIET;
    while (!isOver(operation)) {
      progress.step(
          operation.path("kind").asString() + ": " + operation.path("progress").asString("…"));
      operation =
          api.get(
              "/v1/operations/"
                  + operation.path("id").asString()
                  + "?wait="
                  + poll.toSeconds()
                  + "s",
              poll.plus(MARGIN));
    }
    progress.clear();
    return succeeded(operation);
  }

  static boolean isOver(JsonNode operation) {
    return switch (operation.path("state").asString()) {
      case "succeeded", "failed", "cancelled" -> true;
      default -> false;
    };
  }

  private static JsonNode succeeded(JsonNode operation) {
    String id = operation.path("id").asString();
    return switch (operation.path("state").asString()) {
      case "succeeded" -> operation;
      case "cancelled" ->
          throw Problem.of(ErrorCode.CANCELLED, "Operation " + id + " was cancelled").toException();
      default -> throw Api.problem(operation.path("error")).toException();
    };
  }

  /// The first thing an operation made.
  static String result(JsonNode operation) {
    return operation.path("result_ids").path(0).asString("");
  }
}
