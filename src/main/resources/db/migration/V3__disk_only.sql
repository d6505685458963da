-- Whether a sandbox is, or is being, suspended without its memory.
ALTER TABLE sandboxes ADD COLUMN disk_only INTEGER NOT NULL DEFAULT 0;
