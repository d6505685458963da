-- Times are milliseconds since 1970, durations milliseconds, flags 0 or 1, columns named *_json hold JSON.
-- Only what SQLite and PostgreSQL both understand.

CREATE TABLE settings (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
);

CREATE TABLE sandboxes (
  id TEXT PRIMARY KEY,
  project TEXT NOT NULL,
  template TEXT NOT NULL,
  template_digest TEXT NOT NULL,
  snapshot_id TEXT,
  state TEXT NOT NULL,
  cause_json TEXT,
  vcpus INTEGER NOT NULL,
  memory_mib INTEGER NOT NULL,
  disk_mib INTEGER NOT NULL,
  env_json TEXT NOT NULL,
  metadata_json TEXT NOT NULL,
  timeout BIGINT,
  expires_at BIGINT,
  on_timeout TEXT NOT NULL,
  idle_timeout BIGINT,
  auto_wake INTEGER NOT NULL,
  node TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  state_changed_at BIGINT NOT NULL,
  rev BIGINT NOT NULL
);
CREATE INDEX sandboxes_by_project ON sandboxes (project, created_at, id);
CREATE INDEX sandboxes_by_state ON sandboxes (state, created_at);
CREATE INDEX sandboxes_by_template ON sandboxes (template_digest);
CREATE INDEX sandboxes_by_snapshot ON sandboxes (snapshot_id);

-- Metadata again, one row a pair, so that filters have an index.
CREATE TABLE sandbox_metadata (
  sandbox_id TEXT NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (sandbox_id, name)
);

CREATE TABLE operations (
  id TEXT PRIMARY KEY,
  project TEXT NOT NULL,
  kind TEXT NOT NULL,
  sandbox_id TEXT,
  state TEXT NOT NULL,
  terminal INTEGER NOT NULL,
  progress TEXT,
  error_json TEXT,
  result_ids_json TEXT NOT NULL,
  intent_json TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  started_at BIGINT,
  ended_at BIGINT,
  ordinal BIGINT NOT NULL,
  rev BIGINT NOT NULL
);
CREATE INDEX operations_by_project ON operations (project, created_at, id);
CREATE INDEX operations_by_sandbox ON operations (sandbox_id, created_at, id);
CREATE INDEX operations_open ON operations (ordinal) WHERE terminal = 0;
CREATE INDEX operations_ended ON operations (ended_at);

CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  project TEXT NOT NULL,
  sandbox_id TEXT NOT NULL,
  spec_json TEXT NOT NULL,
  shell INTEGER NOT NULL,
  state TEXT NOT NULL,
  terminal INTEGER NOT NULL,
  pid INTEGER,
  exit_json TEXT,
  error_json TEXT,
  keep INTEGER NOT NULL,
  token_epoch INTEGER NOT NULL,
  created_at BIGINT NOT NULL,
  started_at BIGINT,
  ended_at BIGINT,
  rev BIGINT NOT NULL
);
CREATE INDEX sessions_by_sandbox ON sessions (sandbox_id, created_at, id);
CREATE INDEX sessions_open ON sessions (created_at) WHERE terminal = 0;

CREATE TABLE templates (
  project TEXT NOT NULL,
  digest TEXT NOT NULL,
  name TEXT NOT NULL,
  defaults_json TEXT NOT NULL,
  root_bytes BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (project, digest)
);
CREATE INDEX templates_by_project ON templates (project, created_at, digest);
CREATE INDEX templates_by_digest ON templates (digest);

CREATE TABLE template_tags (
  project TEXT NOT NULL,
  name TEXT NOT NULL,
  tag TEXT NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (project, name, tag)
);
CREATE INDEX template_tags_by_digest ON template_tags (project, digest);

CREATE TABLE snapshots (
  id TEXT PRIMARY KEY,
  project TEXT NOT NULL,
  sandbox_id TEXT NOT NULL,
  name TEXT,
  template TEXT NOT NULL,
  template_digest TEXT NOT NULL,
  vcpus INTEGER NOT NULL,
  memory_mib INTEGER NOT NULL,
  disk_mib INTEGER NOT NULL,
  node TEXT NOT NULL,
  bytes BIGINT NOT NULL,
  internal INTEGER NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX snapshots_by_project ON snapshots (project, created_at, id);
CREATE INDEX snapshots_by_template ON snapshots (template_digest);

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  project TEXT NOT NULL,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  created_at BIGINT NOT NULL,
  revoked_at BIGINT
);
CREATE INDEX api_keys_by_project ON api_keys (project, created_at);

-- The last number given out; a row and not a sequence, so that numbers are committed in their order.
CREATE TABLE counters (
  name TEXT PRIMARY KEY,
  value BIGINT NOT NULL
);
INSERT INTO counters (name, value) VALUES ('event', 0), ('operation', 0);

CREATE TABLE events (
  seq BIGINT PRIMARY KEY,
  project TEXT NOT NULL,
  at BIGINT NOT NULL,
  type TEXT NOT NULL,
  sandbox_id TEXT,
  operation_id TEXT,
  data_json TEXT NOT NULL
);
CREATE INDEX events_by_project ON events (project, seq);

CREATE TABLE idempotency (
  project TEXT NOT NULL,
  name TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  result_id TEXT NOT NULL,
  at BIGINT NOT NULL,
  PRIMARY KEY (project, name)
);
CREATE INDEX idempotency_by_age ON idempotency (at);
