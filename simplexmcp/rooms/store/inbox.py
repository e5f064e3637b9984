"""What is directed at somebody and still unread, in all rooms: for one persona, and for whoever supervises them all."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from simplexmcp.rooms.jsontext import size
from simplexmcp.rooms.pages import FLOOR, fill, remainder
from simplexmcp.rooms.store.messages import drafts, fetch_each, mentioned
from simplexmcp.rooms.store.personas import disclosure
from simplexmcp.rooms.store.reading import Request, by_urgency
from simplexmcp.rooms.store.unread import CANDIDATE, directed_sql, needle, rooms_with_unread

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from simplexmcp.rooms.runtime import Binding
    from simplexmcp.rooms.store.database import Database

__all__ = ["Place", "my_mentions", "pending_work"]

_MOST_ROOMS = 4000


class Place(NamedTuple):
    """Where a page of pending work ended: the oldest message's time (epoch seconds), the persona, the room."""

    oldest_unix: float
    agent_id: str
    room_id: int


def my_mentions(db: Database, binding: Binding, request: Request, after_id: int) -> dict[str, Any]:
    """The unread messages directed at the persona, in the order in which they were posted, and each room's counts.
    Moves no marker."""
    with db.snapshot():
        lost = disclosure(db, binding)
        directed = _directed(db, binding.agent_id)
        wanted = [key for key in directed if key > after_id]
        fixed = {
            **lost,
            "messages": [],
            "total_directed": len(directed),
            "next_after_id": max([after_id, *wanted[-1:]]),
        }
        rooms = _rooms(db, binding.agent_id, request.budget, {**fixed, "by_room_truncated": True, "byte_limited": True})
        left = remainder(request.budget, {**fixed, **rooms, "byte_limited": True})
        fetched = fetch_each(db, wanted[: request.limit], budget=left, preview=request.preview)
        found = drafts(db, fetched.rows)
        for draft, row in zip(found, fetched.rows, strict=True):
            name = db.value("SELECT name FROM rooms WHERE id = ?", row["room_id"])
            draft.message.update(room_id=row["room_id"], room_name=name)
        page = fill(found, left)
        count = len(page.messages)
        return {
            **fixed,
            "messages": page.messages,
            "next_after_id": wanted[count - 1] if count else after_id,
            **rooms,
            **({"byte_limited": True} if page.byte_limited or count < len(wanted) else {}),
        }


def pending_work(
    db: Database, after: Place | None, limit: int, *, room_id: int | None = None
) -> tuple[list[dict[str, Any]], bool]:
    """Who is present and has unread directed messages, in all rooms or in one, longest waiting first; and whether
    there are more."""
    with db.snapshot():
        rooms = [room for room in _rooms_with_members(db) if room_id in (None, room)]
        rows = [row for room in rooms for row in _pending(db, room)]
        rows.sort(key=_place)
        if after is not None:
            rows = [row for row in rows if _place(row) > after]
        return rows[:limit], len(rows) > limit


def _directed(db: Database, agent_id: str) -> list[int]:
    """The global IDs of all unread messages directed at the persona where it is present."""
    found = db.all(
        f"""SELECT m.id FROM memberships b CROSS JOIN messages m ON m.room_id = b.room_id AND m.seq > b.last_read_seq
        WHERE b.agent_id = ?1 AND b.left_at IS NULL AND (m.mentions IS NOT NULL OR m.reply_to_agent IS NOT NULL)
          AND m.agent_id <> ?1 AND {directed_sql("?1", "?2", "m")}""",
        agent_id,
        needle(agent_id),
    )
    return sorted(row["id"] for row in found)


def _rooms(db: Database, agent_id: str, budget: int, fixed: dict[str, Any]) -> dict[str, Any]:
    """The rooms with unread messages, in a third of the budget, or less where that leaves too little for a message."""
    found = by_urgency(rooms_with_unread(db, agent_id))
    left = min(budget // 3, budget - size({**fixed, "by_room": []}) - FLOOR)
    kept: list[dict[str, Any]] = []
    used = 2
    for room in found[:_MOST_ROOMS]:
        used += size(room) + bool(kept)
        if used > left:
            break
        kept.append(room)
    return {"by_room": kept, **({"by_room_truncated": True} if len(kept) < len(found) else {})}


def _rooms_with_members(db: Database) -> Iterator[int]:
    for row in db.all("SELECT DISTINCT room_id FROM memberships WHERE left_at IS NULL"):
        yield row["room_id"]


def _pending(db: Database, room_id: int) -> list[dict[str, Any]]:
    """The rows of one room: its messages that are directed at anybody are read once, above the lowest marker."""
    members = {
        row["agent_id"]: row
        for row in db.all(
            """SELECT m.agent_id, m.last_read_seq, r.name,
              max(0, unixepoch('now') - unixepoch(m.last_seen)) AS idle_seconds
            FROM memberships m JOIN rooms r ON r.id = m.room_id WHERE m.room_id = ? AND m.left_at IS NULL""",
            room_id,
        )
    }
    found: dict[str, dict[str, Any]] = {}
    lowest = min(row["last_read_seq"] for row in members.values())
    addressees = functools.cache(_addressees)
    for message in db.rows(
        f"""SELECT seq, agent_id, mentions, reply_to_agent, CAST(strftime('%s', created_at) AS INTEGER) AS unix
        FROM messages WHERE room_id = ? AND seq > ? AND {CANDIDATE} ORDER BY seq""",
        room_id,
        lowest,
    ):
        for agent_id in addressees(message["mentions"], message["reply_to_agent"]):
            member = members.get(agent_id)
            if member is None or agent_id == message["agent_id"] or message["seq"] <= member["last_read_seq"]:
                continue
            row = found.get(agent_id) or found.setdefault(agent_id, _first(room_id, member, message))
            row["directed_unread"] += 1
    return list(found.values())


def _addressees(mentions: str | None, reply_to_agent: str | None) -> frozenset[str]:
    names = mentioned(mentions) or []
    return frozenset(names if reply_to_agent is None else [*names, reply_to_agent])


def _first(room_id: int, member: sqlite3.Row, message: sqlite3.Row) -> dict[str, Any]:
    return {
        "agent_id": member["agent_id"],
        "room_id": room_id,
        "room_name": member["name"],
        "directed_unread": 0,
        "oldest_seq": message["seq"],
        "oldest_unix": message["unix"],
        "idle_seconds": member["idle_seconds"],
        "last_read_seq": member["last_read_seq"],
    }


def _place(row: dict[str, Any]) -> Place:
    return Place(row["oldest_unix"], row["agent_id"], row["room_id"])
