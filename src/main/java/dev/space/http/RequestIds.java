package dev.space.http;

import java.util.Optional;
import java.util.random.RandomGenerator;
import java.util.regex.Pattern;

/// Gives every request an id: the caller's `X-Request-Id` when it is sane, else a new one.
public final class RequestIds {
  public static final String HEADER = "X-Request-Id";

  private static final Pattern SANE = Pattern.compile("[A-Za-z0-9._-]{1,64}");
  private static final char[] ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789".toCharArray();
  private static final int RANDOM_CHARS = 20;

  private final RandomGenerator random;

  /// @param random must be safe for use by many threads
  public RequestIds(RandomGenerator random) {
    this.random = random;
  }

  public String forRequest(Optional<String> presented) {
    return presented.filter(id -> SANE.matcher(id).matches()).orElseGet(this::next);
  }

  private String next() {
    var id = new StringBuilder("req-");
    for (int i = 0; i < RANDOM_CHARS; i++) {
      id.append(ALPHABET[random.nextInt(ALPHABET.length)]);
    }
    return id.toString();
  }
}
