package dev.space.http;

/// Answers one request, blocking. What it throws becomes the answer: a `SpaceException` its own
/// problem, anything else `internal`. Runs on a virtual thread of its own request.
@FunctionalInterface
public interface Handler {
  void handle(Exchange exchange) throws Exception;
}
