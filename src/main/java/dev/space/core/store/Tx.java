package dev.space.core.store;

/// A transaction: the rows of each entity. Not to be used outside of the function it was given to.
///
/// Every `update` compares the record's `rev` with the stored one and writes only when they are
/// equal; it returns the record with its new `rev`.
public interface Tx {

  SandboxRows sandboxes();

  OperationRows operations();

  SessionRows sessions();

  TemplateRows templates();

  SnapshotRows snapshots();

  KeyRows keys();

  EventRows events();

  IdempotencyRows idempotency();

  SettingRows settings();
}
