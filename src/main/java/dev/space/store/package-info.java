/// The store on SQLite: one file in the data directory. The SQL is the subset that PostgreSQL
/// understands too; only [SqliteStore] knows which database it is.
@NullMarked
package dev.space.store;

import org.jspecify.annotations.NullMarked;
