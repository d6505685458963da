package dev.space.store;

/// A compare-and-set met another revision. Never leaves the store: the transaction runs again.
final class StaleRow extends RuntimeException {

  StaleRow(String what) {
    super(what);
  }
}
