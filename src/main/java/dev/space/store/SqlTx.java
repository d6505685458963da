package dev.space.store;

import dev.space.core.store.EventRows;
import dev.space.core.store.IdempotencyRows;
import dev.space.core.store.KeyRows;
import dev.space.core.store.OperationRows;
import dev.space.core.store.SandboxRows;
import dev.space.core.store.SessionRows;
import dev.space.core.store.SettingRows;
import dev.space.core.store.SnapshotRows;
import dev.space.core.store.TemplateRows;
import dev.space.core.store.Tx;

/// A transaction over SQL.
record SqlTx(
    SandboxRows sandboxes,
    OperationRows operations,
    SessionRows sessions,
    TemplateRows templates,
    SnapshotRows snapshots,
    KeyRows keys,
    EventRows events,
    IdempotencyRows idempotency,
    SettingRows settings)
    implements Tx {

  static SqlTx over(Sql sql) {
    return new SqlTx(
        new SqlSandboxes(sql),
        new SqlOperations(sql),
        new SqlSessions(sql),
        new SqlTemplates(sql),
        new SqlSnapshots(sql),
        new SqlKeys(sql),
        new SqlEvents(sql),
        new SqlIdempotency(sql),
        new SqlSettings(sql));
  }
}
