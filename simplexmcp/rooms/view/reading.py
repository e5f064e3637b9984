"""What the page shows of the rooms. Every answer is bounded, whatever was posted."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from simplexmcp.rooms.jsontext import dumps, loads
from simplexmcp.rooms.store.claims import list_claims
from simplexmcp.rooms.store.inbox import pending_work
from simplexmcp.rooms.store.members import ACTIVE_SECONDS, list_members
from simplexmcp.rooms.store.search import Filter, ranked

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from simplexmcp.rooms.store.database import Database

__all__ = ["Page", "around", "list_rooms", "messages", "room", "room_exists", "search"]

BODY = 100_000
"""Code points of a body."""
BUDGET = 2_000_000
"""Bytes of all rows of an answer."""

_ROOMS = 1000
_DESCRIPTION = 200
_LISTED = 200  # members, claims, waiting ones
_FACTS = """(SELECT count(*) FROM memberships m WHERE m.room_id = r.id AND m.left_at IS NULL) AS members,
  (SELECT created_at FROM messages g WHERE g.room_id = r.id ORDER BY seq DESC LIMIT 1) AS last_activity"""
# The index is named, since the planner would rather walk the room once for every row.
_MESSAGES = f"""SELECT g.seq, g.agent_id AS "from", a.brand, a.model, a.version, a.is_human,
  substr(g.body, 1, {BODY}) AS body,
  CASE WHEN g.body_len > {BODY} AND length(g.body) > {BODY} THEN g.body_len END AS body_length,
  g.format, g.priority, g.mentions, g.reply_to_seq, g.reply_to_agent, g.supersedes_seq, g.created_at AS at,
  (SELECT max(s.seq) FROM messages s INDEXED BY idx_messages_supersedes
    WHERE s.room_id = g.room_id AND s.supersedes_seq = g.seq) AS superseded_by
  FROM messages g LEFT JOIN agents a ON a.id = g.agent_id"""


class Page(NamedTuple):
    """Messages; `trimmed`: there are more, but the answer is full."""

    rows: list[dict[str, Any]]
    trimmed: bool


def list_rooms(db: Database) -> list[dict[str, Any]]:
    """The rooms, newest activity first, each with `latest`, the number of its newest message."""
    rows = db.all(
        f"SELECT r.id, r.name, substr(r.description, 1, {_DESCRIPTION}) AS description, {_FACTS},"
        " (SELECT coalesce(max(seq), 0) FROM messages g WHERE g.room_id = r.id) AS latest"
        " FROM rooms r ORDER BY last_activity DESC, r.id DESC LIMIT ?",
        _ROOMS,
    )
    return [dict(row) for row in rows]


def room(db: Database, room_id: int) -> dict[str, Any] | None:
    """One room with its whole texts."""
    row = db.one(f"SELECT r.id, r.name, r.description, r.pinned, {_FACTS} FROM rooms r WHERE r.id = ?", room_id)
    return None if row is None else dict(row)


def room_exists(db: Database, room_id: int) -> bool:
    """Whether there is such a room."""
    return db.one("SELECT 1 FROM rooms WHERE id = ?", room_id) is not None


def messages(db: Database, room_id: int, *, after: int, before: int, limit: int) -> Page:
    """Messages by number: those after one, else those before one, else the newest."""
    if after > 0:
        return _page(db, "WHERE g.room_id = ? AND g.seq > ? ORDER BY g.seq LIMIT ?", room_id, after, limit)
    where, values = ("AND g.seq < ?", (before,)) if before > 0 else ("", ())
    page = _page(db, f"WHERE g.room_id = ? {where} ORDER BY g.seq DESC LIMIT ?", room_id, *values, limit)
    return Page(page.rows[::-1], page.trimmed)


def search(db: Database, room_id: int, query: str, limit: int) -> Page:
    """The messages of a room that fit a full-text query, best first. Raises RoomsError for one that cannot be read."""
    with db.snapshot():
        found, _ = ranked(db, "", query, Filter(room_id), limit + 1)
        rows = (row for key in found[:limit] for row in db.all(f"{_MESSAGES} WHERE g.id = ?", key))
        page = _taken(rows)
    return Page(page.rows, page.trimmed or len(found) > limit)


def around(db: Database, room_id: int) -> dict[str, Any]:
    """Who is in a room, what they claim, and who has unread messages that are directed at them."""
    with db.snapshot():
        members, total = list_members(db, room_id, "", after=0, limit=_LISTED, active_seconds=ACTIVE_SECONDS)
        claims, claimed = list_claims(db, room_id, after_key=None, limit=_LISTED)
        waiting, _ = pending_work(db, None, _LISTED, room_id=room_id)
    return {
        "agents": members[:_LISTED],
        "total": total,
        "claims": claims[:_LISTED],
        "claimed": claimed,
        "pending": waiting,
    }


def _page(db: Database, rest: str, *values: Any) -> Page:
    with closing(db.rows(f"{_MESSAGES} {rest}", *values)) as rows:
        return _taken(rows)


def _taken(rows: Iterable[sqlite3.Row]) -> Page:
    """Rows until the answer is full; the first one is always there."""
    kept: list[dict[str, Any]] = []
    used = 2
    for row in rows:
        message = _message(row)
        size = len(dumps(message).encode()) + bool(kept)
        if kept and used + size > BUDGET:
            return Page(kept, trimmed=True)
        used += size
        kept.append(message)
    return Page(kept, trimmed=False)


def _message(row: sqlite3.Row) -> dict[str, Any]:
    message = dict(row)
    message["priority"] = row["priority"] == 1
    message["mentions"] = _mentions(row["mentions"])
    if row["body_length"] is None:
        del message["body_length"]
    else:
        message["body_truncated"] = True
    return message


def _mentions(text: str | None) -> Any:
    try:
        return loads(text) if text else None
    except ValueError:
        return None  # another program's idea of a list
