package dev.space.node;

import java.security.SecureRandom;

/// Names of VM directories that belong to no sandbox.
final class Names {

  private static final String ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";
  private static final int LENGTH = 20;
  private static final SecureRandom RANDOM = new SecureRandom();

  private Names() {}

  /// 20 characters, as long as a sandbox's id, and none: it has a dash.
  static String fresh(String kind) {
    StringBuilder name = new StringBuilder(kind).append('-');
    while (name.length() < LENGTH) {
      name.append(ALPHABET.charAt(RANDOM.nextInt(ALPHABET.length())));
    }
    return name.toString();
  }
}
