package dev.space.core.store;

import java.util.function.Function;

/// The durable store. What [#transact] returned from has reached the disk.
///
/// Failures are `SpaceException`s: DISK_FULL when there is no room (nothing of the transaction was
/// kept), INTERNAL otherwise.
public interface Store extends AutoCloseable {

  /// Runs the work in one transaction, which is rolled back when it throws. The work may run again
  /// when another writer got in between, so it changes nothing but what it does through the `Tx`.
  <T> T transact(Function<Tx, T> work);

  /// Runs the work on one consistent state; it must not write.
  <T> T read(Function<Tx, T> work);

  @Override
  void close();
}
