"""The tables, shared with the reference program 0.14.0, and what ours adds to them.

Everything is made with if-not-exists, so that both programs can open one file, whoever made it. What ours adds is
additive: indexes, tables of its own, and `user_version`, which the reference leaves at 0. A step from one version to
the next is one entry of `MIGRATIONS`; it runs in the transaction that raises the version.
"""

from __future__ import annotations

__all__ = ["MIGRATIONS", "TABLES", "VERSION"]

# Names of tables, columns, indexes and triggers are those of the reference: one trigger under two names would index
# each message twice. The order of statements is that of their dependencies.
TABLES = """
CREATE TABLE IF NOT EXISTS rooms (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  description TEXT,
  pinned TEXT,
  created_at TEXT NOT NULL DEFAULT (datetime('now'))
);
CREATE TABLE IF NOT EXISTS agents (
  id TEXT PRIMARY KEY,
  is_human INTEGER NOT NULL DEFAULT 0,
  brand TEXT,
  model TEXT,
  version TEXT,
  resume_word TEXT,
  runtime_epoch INTEGER NOT NULL DEFAULT 1,
  description TEXT,
  created_at TEXT NOT NULL DEFAULT (datetime('now')),
  CHECK (
    (is_human = 1 AND brand IS NULL AND model IS NULL AND version IS NULL AND resume_word IS NULL)
    OR (is_human = 0 AND brand IS NOT NULL AND model IS NOT NULL AND version IS NOT NULL AND resume_word IS NOT NULL)
  )
);
CREATE TABLE IF NOT EXISTS memberships (
  room_id INTEGER NOT NULL REFERENCES rooms(id),
  agent_id TEXT NOT NULL REFERENCES agents(id),
  joined_at TEXT NOT NULL DEFAULT (datetime('now')),
  last_read_seq INTEGER NOT NULL DEFAULT 0,
  last_seen TEXT,
  left_at TEXT,
  role TEXT,
  PRIMARY KEY (room_id, agent_id)
);
CREATE TABLE IF NOT EXISTS messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  room_id INTEGER NOT NULL REFERENCES rooms(id),
  seq INTEGER NOT NULL,
  agent_id TEXT NOT NULL REFERENCES agents(id),
  format TEXT NOT NULL DEFAULT 'text',
  priority INTEGER NOT NULL DEFAULT 0,
  body TEXT NOT NULL,
  body_len INTEGER NOT NULL,
  mentions TEXT,
  reply_to_seq INTEGER,
  reply_to_agent TEXT,
  supersedes_seq INTEGER,
  client_message_id TEXT,
  created_at TEXT NOT NULL DEFAULT (datetime('now')),
  UNIQUE (room_id, seq)
);
CREATE INDEX IF NOT EXISTS idx_messages_reply ON messages(room_id, reply_to_seq) WHERE reply_to_seq IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_messages_supersedes
  ON messages(room_id, supersedes_seq) WHERE supersedes_seq IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS idx_messages_client_message_id
  ON messages(room_id, agent_id, client_message_id) WHERE client_message_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_messages_directed_candidates
  ON messages(room_id, seq) WHERE mentions IS NOT NULL OR reply_to_agent IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_memberships_agent_present ON memberships(agent_id, left_at, room_id);
CREATE TABLE IF NOT EXISTS claims (
  room_id INTEGER NOT NULL REFERENCES rooms(id),
  key TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  note TEXT,
  expires_at TEXT NOT NULL,
  updated_at TEXT NOT NULL DEFAULT (datetime('now')),
  PRIMARY KEY (room_id, key)
);
CREATE TABLE IF NOT EXISTS wait_leases (
  room_id INTEGER NOT NULL REFERENCES rooms(id),
  agent_id TEXT NOT NULL REFERENCES agents(id),
  epoch INTEGER NOT NULL,
  started_at TEXT NOT NULL DEFAULT (datetime('now')),
  expires_at TEXT NOT NULL,
  PRIMARY KEY (room_id, agent_id)
);
CREATE VIRTUAL TABLE IF NOT EXISTS messages_fts USING fts5(body, content='messages', content_rowid='id');
CREATE TRIGGER IF NOT EXISTS messages_fts_ai AFTER INSERT ON messages BEGIN
  INSERT INTO messages_fts(rowid, body) VALUES (new.id, new.body);
END;
CREATE TRIGGER IF NOT EXISTS messages_fts_ad AFTER DELETE ON messages BEGIN
  INSERT INTO messages_fts(messages_fts, rowid, body) VALUES ('delete', old.id, old.body);
END;
CREATE TRIGGER IF NOT EXISTS messages_reject_nul BEFORE INSERT ON messages WHEN instr(new.body, char(0)) > 0
BEGIN SELECT RAISE(ABORT, 'message body holds a NUL character'); END;
CREATE TRIGGER IF NOT EXISTS rooms_reject_nul_insert BEFORE INSERT ON rooms
WHEN instr(coalesce(new.description, ''), char(0)) > 0 OR instr(coalesce(new.pinned, ''), char(0)) > 0
BEGIN SELECT RAISE(ABORT, 'room text holds a NUL character'); END;
CREATE TRIGGER IF NOT EXISTS rooms_description_reject_nul_update BEFORE UPDATE OF description ON rooms
WHEN instr(coalesce(new.description, ''), char(0)) > 0
BEGIN SELECT RAISE(ABORT, 'room description holds a NUL character'); END;
CREATE TRIGGER IF NOT EXISTS rooms_pinned_reject_nul_update BEFORE UPDATE OF pinned ON rooms
WHEN instr(coalesce(new.pinned, ''), char(0)) > 0
BEGIN SELECT RAISE(ABORT, 'pinned text holds a NUL character'); END;
CREATE TRIGGER IF NOT EXISTS agents_reject_nul_insert BEFORE INSERT ON agents
WHEN instr(coalesce(new.description, ''), char(0)) > 0
BEGIN SELECT RAISE(ABORT, 'description holds a NUL character'); END;
CREATE TRIGGER IF NOT EXISTS agents_description_reject_nul_update BEFORE UPDATE OF description ON agents
WHEN instr(coalesce(new.description, ''), char(0)) > 0
BEGIN SELECT RAISE(ABORT, 'description holds a NUL character'); END;
CREATE TRIGGER IF NOT EXISTS claims_reject_nul_insert BEFORE INSERT ON claims
WHEN instr(coalesce(new.note, ''), char(0)) > 0
BEGIN SELECT RAISE(ABORT, 'claim note holds a NUL character'); END;
CREATE TRIGGER IF NOT EXISTS claims_note_reject_nul_update BEFORE UPDATE OF note ON claims
WHEN instr(coalesce(new.note, ''), char(0)) > 0
BEGIN SELECT RAISE(ABORT, 'claim note holds a NUL character'); END;
"""

# From version N to N+1 each. Unread counts read `simplexmcp_messages_author` (numbers are dense: what others wrote
# is the rest); three letters of an author's ID serve as well as all of them, in half the space. The planner is told by
# name to take the partial index for superseding messages.
MIGRATIONS = (
    """
CREATE INDEX IF NOT EXISTS simplexmcp_messages_author ON messages(room_id, substr(agent_id, -3), seq);
CREATE INDEX IF NOT EXISTS simplexmcp_messages_superseding
  ON messages(room_id, supersedes_seq, seq) WHERE supersedes_seq IS NOT NULL;
CREATE TABLE IF NOT EXISTS simplexmcp_retention (
  room_id INTEGER PRIMARY KEY REFERENCES rooms(id) ON DELETE CASCADE,
  keep_last INTEGER,
  max_age_days INTEGER
);
""",
)
VERSION = len(MIGRATIONS)
