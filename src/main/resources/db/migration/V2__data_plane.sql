-- Ports whose route asks for no key; a list of numbers.
ALTER TABLE sandboxes ADD COLUMN public_ports_json TEXT NOT NULL DEFAULT '[]';

-- Counting what is open, and finding what may be forgotten.
CREATE INDEX sessions_open_by_sandbox ON sessions (sandbox_id) WHERE terminal = 0;
CREATE INDEX sessions_ended ON sessions (ended_at) WHERE terminal = 1 AND keep = 0;
