"""Claims: who said to work on what, until when. Advice among members, kept per persona; expiry frees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import sqlite3

    from simplexmcp.rooms.store.database import Database

__all__ = ["Held", "claim", "drop_expired", "list_claims", "release"]

_COLUMNS = (
    "key, agent_id AS holder, note, strftime('%Y-%m-%dT%H:%M:%SZ', expires_at) AS expires_at,"
    " unixepoch(expires_at) - unixepoch('now') AS expires_in_seconds"
)
_LIVE = "expires_at > datetime('now')"


class Held(NamedTuple):
    """A claim after an attempt: the row as it stands, whether the asker has it, and had a row before."""

    row: sqlite3.Row
    granted: bool
    renewed: bool


def claim(db: Database, room_id: int, agent_id: str, key: str, seconds: int, note: str | None) -> Held:
    """Inside a transaction: takes or renews a claim, unless another holds it."""
    earlier = db.one(
        f"SELECT {_COLUMNS}, {_LIVE} AS live FROM claims WHERE room_id = ? AND key = ?",
        room_id,
        key,
    )
    if earlier is not None and earlier["live"] and earlier["holder"] != agent_id:
        return Held(earlier, granted=False, renewed=False)
    db.run(
        "INSERT INTO claims (room_id, key, agent_id, note, expires_at) VALUES (?, ?, ?, ?, datetime('now', ?))"
        " ON CONFLICT (room_id, key) DO UPDATE SET agent_id = excluded.agent_id, note = excluded.note,"
        " expires_at = excluded.expires_at, updated_at = datetime('now')",
        room_id,
        key,
        agent_id,
        note,
        f"+{seconds} seconds",
    )
    row = db.one(f"SELECT {_COLUMNS} FROM claims WHERE room_id = ? AND key = ?", room_id, key)
    assert row is not None
    return Held(row, granted=True, renewed=earlier is not None and earlier["holder"] == agent_id)


def release(db: Database, room_id: int, agent_id: str, key: str) -> str | None:
    """Inside a transaction: removes an own or expired claim. None, or why nothing was removed: the holder's ID, or an
    empty text when there is no such claim."""
    row = db.one(f"SELECT agent_id, {_LIVE} AS live FROM claims WHERE room_id = ? AND key = ?", room_id, key)
    if row is None:
        return ""
    if row["live"] and row["agent_id"] != agent_id:
        holder: str = row["agent_id"]
        return holder
    db.run("DELETE FROM claims WHERE room_id = ? AND key = ?", room_id, key)
    return None


def drop_expired(db: Database, room_id: int) -> None:
    """Removes the expired claims of a room, if there are any."""
    if db.one(f"SELECT 1 FROM claims WHERE room_id = ? AND NOT {_LIVE}", room_id) is None:
        return
    with db.write():
        db.run(f"DELETE FROM claims WHERE room_id = ? AND NOT {_LIVE}", room_id)


def list_claims(db: Database, room_id: int, *, after_key: str | None, limit: int) -> tuple[list[dict[str, Any]], int]:
    """The live claims by key, one more than `limit` when there are more, and how many there are in all."""
    with db.snapshot():
        rows = db.all(
            f"SELECT {_COLUMNS} FROM claims WHERE room_id = ? AND {_LIVE} AND (? IS NULL OR key > ?)"
            " ORDER BY key LIMIT ?",
            room_id,
            after_key,
            after_key,
            limit + 1,
        )
        total = db.value(f"SELECT count(*) FROM claims WHERE room_id = ? AND {_LIVE}", room_id)
    return [dict(row) for row in rows], total
