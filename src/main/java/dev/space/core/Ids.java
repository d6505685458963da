package dev.space.core;

import java.security.SecureRandom;

/// Makes ids: 20 characters `[a-z0-9]`, which is what E2B's SDKs accept too. The first letter tells
/// the kind to people; the other 19 carry 98 bits, so that ids are never reused nor guessed.
public final class Ids {

  /// What an id stands for.
  public enum Kind {
    SANDBOX('i'),
    OPERATION('o'),
    SESSION('s'),
    SNAPSHOT('p'),
    KEY('k');

    private final char letter;

    Kind(char letter) {
      this.letter = letter;
    }

    /// The first letter of ids of this kind.
    public char letter() {
      return letter;
    }
  }

  /// Characters of an id.
  public static final int LENGTH = 20;

  private static final String ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz";

  private final SecureRandom random;

  public Ids(SecureRandom random) {
    this.random = random;
  }

  /// A new id.
  public String next(Kind kind) {
    char[] chars = new char[LENGTH];
    chars[0] = kind.letter();
    for (int i = 1; i < LENGTH; i++) {
      chars[i] = ALPHABET.charAt(random.nextInt(ALPHABET.length()));
    }
    return new String(chars);
  }
}
