package dev.space.store;

import dev.space.core.store.SettingRows;
import java.util.Optional;

record SqlSettings(Sql sql) implements SettingRows {

  @Override
  public Optional<String> find(String name) {
    return sql.one(
        "SELECT value FROM settings WHERE name = :name", row -> row.text("value"), "name", name);
  }

  @Override
  public void put(String name, String value) {
    sql.change(
        """
        INSERT INTO settings (name, value) VALUES (:name, :value)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value""",
        "name",
        name,
        "value",
        value);
  }
}
