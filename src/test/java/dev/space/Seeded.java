package dev.space;

import java.util.List;
import java.util.random.RandomGenerator;
import java.util.random.RandomGeneratorFactory;

/// Loops over random input. A failure names the seed; `-Dspace.test.seed=N` repeats just that run.
public final class Seeded {

  private static final RandomGeneratorFactory<RandomGenerator> GENERATORS =
      RandomGeneratorFactory.of("L64X128MixRandom");

  private final RandomGenerator random;

  private Seeded(long seed) {
    this.random = GENERATORS.create(seed);
  }

  /// One run on the input that its source gives.
  public interface Run {
    void with(Seeded input) throws Exception;
  }

  /// Makes so many runs, each from a seed of its own.
  public static void times(int runs, Run run) {
    Long only = Long.getLong("space.test.seed");
    if (only != null) {
      once(only, run);
      return;
    }
    long first = System.nanoTime();
    for (int i = 0; i < runs; i++) {
      once(first + i, run);
    }
  }

  private static void once(long seed, Run run) {
    try {
      run.with(new Seeded(seed));
    } catch (Exception | AssertionError e) {
      throw new AssertionError("failed with -Dspace.test.seed=" + seed + ": " + e.getMessage(), e);
    }
  }

  /// A number from 0 up to but not including the bound.
  public int below(int bound) {
    return random.nextInt(bound);
  }

  /// Any bytes, at most so many, often few.
  public byte[] bytes(int most) {
    byte[] bytes = new byte[below(1 + below(most + 1))];
    random.nextBytes(bytes);
    return bytes;
  }

  /// Any characters, those of the lowest plane likeliest, now and then half of a pair.
  public String text(int most) {
    int length = below(1 + below(most + 1));
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < length; i++) {
      switch (below(8)) {
        case 0 -> text.append((char) below(0x20));
        case 1 -> text.append((char) below(0x1_0000));
        case 2 -> text.appendCodePoint(below(0x11_0000));
        case 3 -> text.append("%&=+\"\\{}:,".charAt(below(10)));
        default -> text.append((char) (0x20 + below(0x5f)));
      }
    }
    return text.toString();
  }

  /// Small letters, at least one.
  public String word(int most) {
    StringBuilder word = new StringBuilder();
    for (int i = 1 + below(most); i > 0; i--) {
      word.append((char) ('a' + below(26)));
    }
    return word.toString();
  }

  /// Some of these, in any order, again and again.
  public String joined(List<String> parts, int most) {
    StringBuilder text = new StringBuilder();
    for (int i = below(most + 1); i > 0; i--) {
      text.append(parts.get(below(parts.size())));
    }
    return text.toString();
  }
}
