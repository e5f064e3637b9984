"""Members of rooms: who is in, since when, how far they have read, and whether anyone listens there.

A membership is made by the first join and stays: leaving only dates it. Its `last_seen` says that a runtime of the
persona was there, not that a model reads.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from simplexmcp.rooms.errors import DatabaseError, RoomsError
from simplexmcp.rooms.store.rooms import DELETED, find_room, room_row

if TYPE_CHECKING:
    import sqlite3

    from simplexmcp.rooms.runtime import Binding, Runtime
    from simplexmcp.rooms.store.database import Database

__all__ = [
    "ACTIVE_SECONDS",
    "count_present",
    "join",
    "leave",
    "list_members",
    "membership",
    "move_marker",
    "presence",
    "resolve_room",
    "set_role",
    "target_room",
    "touch",
]

ACTIVE_SECONDS = 300
_TOUCH_SECONDS = 30.0
# Seconds since the membership was last seen, and whether a wait is open there now.
_LIVENESS = (
    "max(0, unixepoch('now') - unixepoch(m.last_seen)) AS idle_seconds,"
    " EXISTS (SELECT 1 FROM wait_leases w WHERE w.room_id = m.room_id AND w.agent_id = m.agent_id"
    " AND w.expires_at > datetime('now')) AS watching"
)


def membership(db: Database, room: sqlite3.Row, agent_id: str, *, present: bool) -> sqlite3.Row:
    """A persona's row in a room. Raises RoomsError: never joined, left (with `present`), or the room is gone."""
    row = db.one("SELECT * FROM memberships WHERE room_id = ? AND agent_id = ?", room["id"], agent_id)
    if row is None:
        if db.one("SELECT 1 FROM rooms WHERE id = ?", room["id"]) is None:
            raise RoomsError(DELETED)
        raise RoomsError(f'"{agent_id}" never joined room "{room["name"]}". Join it with join_room.')
    if present and row["left_at"] is not None:
        raise RoomsError(f'You have LEFT room "{room["name"]}". Call join_room to come back; your place was kept.')
    return row


def resolve_room(runtime: Runtime, reference: str | None) -> sqlite3.Row:
    """The named room, or the active one, which is let go when it was deleted. Raises RoomsError."""
    if reference is not None:
        return find_room(runtime.database, reference)
    room_id = runtime.active_room()
    try:
        return room_row(runtime.database, room_id)
    except DatabaseError:
        raise
    except RoomsError:
        runtime.room_id = None
        raise


def target_room(
    runtime: Runtime, binding: Binding, room: str | None, *, present: bool
) -> tuple[sqlite3.Row, sqlite3.Row]:
    """The named or active room and the persona's membership of it. Raises RoomsError."""
    row = resolve_room(runtime, room)
    return row, membership(runtime.database, row, binding.agent_id, present=present)


def touch(runtime: Runtime, room_id: int, *, active: bool = False) -> None:
    """Says that a runtime of the persona was in the room just now, at most each 30 s, and only while it is a present
    member at the epoch of this runtime. `active`: as the active room of some call, else as the room it is about."""
    binding = runtime.binding
    if binding is None:
        return
    key = (room_id, binding.agent_id, active)
    now = time.monotonic()
    if now - runtime.touched.get(key, -_TOUCH_SECONDS) < _TOUCH_SECONDS:
        return
    runtime.touched[key] = now
    try:
        with runtime.database.write():
            runtime.database.run(
                "UPDATE memberships SET last_seen = datetime('now')"
                " WHERE room_id = ? AND agent_id = ? AND left_at IS NULL"
                " AND EXISTS (SELECT 1 FROM agents WHERE id = agent_id AND runtime_epoch = ?)",
                room_id,
                binding.agent_id,
                binding.epoch,
            )
    except DatabaseError:
        # A sign of life may fail: the call itself meets the same database and tells what is wrong with it.
        return


def presence(
    db: Database, room_id: int, agent_id: str, *, active_seconds: float = ACTIVE_SECONDS
) -> dict[str, Any] | None:
    """`present`, `active`, `watching`, `idle_seconds` and `last_read_seq` of a member; None for who never joined."""
    row = db.one(
        f"SELECT m.left_at, m.last_read_seq, {_LIVENESS} FROM memberships m WHERE m.room_id = ? AND m.agent_id = ?",
        room_id,
        agent_id,
    )
    if row is None:
        return None
    return {
        **_flags(row, active_seconds),
        "idle_seconds": row["idle_seconds"],
        "last_read_seq": row["last_read_seq"],
    }


def join(db: Database, room_id: int, agent_id: str, role: str | None, *, at_latest: bool) -> tuple[sqlite3.Row, bool]:
    """Inside a transaction: the membership, made or taken up again, and whether it is new; `at_latest` counts only
    then."""
    marker = 0
    if at_latest:
        marker = db.value("SELECT coalesce(max(seq), 0) FROM messages WHERE room_id = ?", room_id)
    added = db.run(
        "INSERT INTO memberships (room_id, agent_id, last_read_seq, last_seen, role)"
        " VALUES (?, ?, ?, datetime('now'), ?) ON CONFLICT DO NOTHING",
        room_id,
        agent_id,
        marker,
        role,
    )
    new = added.rowcount > 0
    if not new:
        db.run(
            "UPDATE memberships SET left_at = NULL, last_seen = datetime('now'), role = coalesce(?, role)"
            " WHERE room_id = ? AND agent_id = ?",
            role,
            room_id,
            agent_id,
        )
    row = db.one("SELECT * FROM memberships WHERE room_id = ? AND agent_id = ?", room_id, agent_id)
    assert row is not None
    return row, new


def leave(db: Database, room_id: int, agent_id: str) -> bool:
    """Inside a transaction: dates the leaving; whether the persona was present."""
    return (
        db.run(
            "UPDATE memberships SET left_at = datetime('now'), last_seen = datetime('now')"
            " WHERE room_id = ? AND agent_id = ? AND left_at IS NULL",
            room_id,
            agent_id,
        ).rowcount
        > 0
    )


def set_role(db: Database, room_id: int, agent_id: str, role: str | None) -> None:
    """Inside a transaction: sets or (None) clears the role in this room."""
    db.run(
        "UPDATE memberships SET role = ?, last_seen = datetime('now') WHERE room_id = ? AND agent_id = ?",
        role,
        room_id,
        agent_id,
    )


def move_marker(db: Database, room_id: int, agent_id: str, seq: int) -> None:
    """Inside a transaction: all up to `seq` counts as read."""
    db.run("UPDATE memberships SET last_read_seq = ? WHERE room_id = ? AND agent_id = ?", seq, room_id, agent_id)


def count_present(db: Database, room_id: int) -> int:
    """How many members are in the room now."""
    count: int = db.value("SELECT count(*) FROM memberships WHERE room_id = ? AND left_at IS NULL", room_id)
    return count


def list_members(
    db: Database, room_id: int, text: str, *, after: int, limit: int, active_seconds: float
) -> tuple[list[dict[str, Any]], int]:
    """Members after a row in the order of joining, one more than `limit` when there are more, each with `cursor`; and
    how many match `text` in all."""
    matching, values = _matching(text)
    with db.snapshot():
        rows = db.all(
            "SELECT m.rowid AS cursor, a.id, a.brand, a.model, a.version, a.is_human, m.role, a.description,"
            f" m.joined_at, m.last_read_seq, m.last_seen, m.left_at, {_LIVENESS}"
            " FROM memberships m JOIN agents a ON a.id = m.agent_id"
            f" WHERE m.room_id = ? AND m.rowid > ?{matching} ORDER BY m.rowid LIMIT ?",
            room_id,
            after,
            *values,
            limit + 1,
        )
        total = db.value(
            f"SELECT count(*) FROM memberships m JOIN agents a ON a.id = m.agent_id WHERE m.room_id = ?{matching}",
            room_id,
            *values,
        )
    members = [{**dict(row), "is_human": bool(row["is_human"]), **_flags(row, active_seconds)} for row in rows]
    return members, total


def _flags(row: sqlite3.Row, active_seconds: float) -> dict[str, bool]:
    present = row["left_at"] is None
    watching = bool(row["watching"])
    idle = row["idle_seconds"]
    recent = idle is not None and idle <= active_seconds
    return {"present": present, "active": present and (watching or recent), "watching": watching}


def _matching(text: str) -> tuple[str, list[str]]:
    if not text:
        return "", []
    literal = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    columns = ("a.id", "a.brand", "a.model", "a.version", "m.role", "a.description")
    clause = " OR ".join(f"{column} LIKE ? ESCAPE '\\'" for column in columns)
    return f" AND ({clause})", [f"%{literal}%"] * len(columns)
