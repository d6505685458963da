package dev.space.wire;

import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalLong;

/// One request.
///
/// @param method in upper case
/// @param target path and query as they stand in the request line, already percent-encoded
/// @param deadline time from the first byte sent to the last byte of the answer read
/// @param silence how long the server may say nothing at all
public record WireRequest(
    String method,
    String target,
    Headers headers,
    Body body,
    Optional<Duration> deadline,
    Optional<Duration> silence) {

  /// What is sent after the head.
  public sealed interface Body {
    /// Nothing.
    record Empty() implements Body {}

    /// Bytes in memory.
    record Bytes(byte[] bytes) implements Body {}

    /// A stream of a known length, or sent in chunks when it isn't known.
    record Stream(InputStream in, OptionalLong length) implements Body {}
  }

  public WireRequest {
    for (int i = 0; i < target.length(); i++) {
      if (target.charAt(i) <= ' ' || target.charAt(i) >= 0x7f) {
        throw new IllegalArgumentException("the request target is not percent-encoded");
      }
    }
    if (!target.startsWith("/")) {
      throw new IllegalArgumentException("the request target must start with a slash");
    }
  }

  /// A request without headers, body or limits of time.
  public static WireRequest of(String method, String target) {
    return new WireRequest(
        method, target, Headers.NONE, new Body.Empty(), Optional.empty(), Optional.empty());
  }

  public WireRequest header(String name, String value) {
    return new WireRequest(method, target, headers.with(name, value), body, deadline, silence);
  }

  public WireRequest json(String text) {
    return header("Content-Type", "application/json")
        .body(new Body.Bytes(text.getBytes(StandardCharsets.UTF_8)));
  }

  public WireRequest body(Body newBody) {
    return new WireRequest(method, target, headers, newBody, deadline, silence);
  }

  public WireRequest within(Duration time) {
    return new WireRequest(method, target, headers, body, Optional.of(time), silence);
  }

  public WireRequest silentFor(Duration time) {
    return new WireRequest(method, target, headers, body, deadline, Optional.of(time));
  }
}
