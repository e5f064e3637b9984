"""Reading a whole room, oldest message first, one message at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Generator

    from simplexmcp.rooms.store.database import Database

__all__ = ["all_messages"]


def all_messages(db: Database, room_id: int) -> Generator[sqlite3.Row]:
    """Each message with its author, `mentions` as stored, and `at` (RFC 3339, UTC) and `unix`. To be closed before
    the database is."""
    yield from db.rows(
        "SELECT m.seq, m.agent_id, a.brand, a.model, a.version, a.is_human, m.format, m.priority, m.body, m.mentions,"
        " m.reply_to_seq, m.reply_to_agent, m.supersedes_seq, m.client_message_id,"
        " strftime('%Y-%m-%dT%H:%M:%SZ', m.created_at) AS at, unixepoch(m.created_at) AS unix"
        " FROM messages m JOIN agents a ON a.id = m.agent_id WHERE m.room_id = ? ORDER BY m.seq",
        room_id,
    )
