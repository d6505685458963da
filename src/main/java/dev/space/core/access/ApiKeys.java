package dev.space.core.access;

/// API keys. Only their hashes are stored.
public final class ApiKeys {

  /// Who presents this key.
  ///
  /// @throws dev.space.core.error.SpaceException UNAUTHENTICATED
  public Caller authenticate(String presentedKey, String requestId) {
    throw new UnsupportedOperationException();
  }
}
