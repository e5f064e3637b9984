"""People in the rooms: they are agents of their own kind, with a name of their own choice and nothing else.

The two kinds never mix: nobody becomes, speaks or reads as a persona of a model here, and a name belongs to who had it
first. Every function is one transaction, and what it refuses is RoomsError.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from simplexmcp.rooms.errors import RoomsError
from simplexmcp.rooms.jsontext import dumps, units
from simplexmcp.rooms.store import members
from simplexmcp.rooms.store.posting import Draft, insert
from simplexmcp.rooms.store.rooms import erase_room
from simplexmcp.rooms.store.unread import latest_seq, unread_count
from simplexmcp.rooms.texts import CAPS, check_text

if TYPE_CHECKING:
    from simplexmcp.rooms.store.database import Database

__all__ = ["LONGEST", "NAME", "delete_room", "join", "leave", "mark_read", "mentions", "post", "seat"]

LONGEST = 100_000
"""UTF-16 units of a message."""
NAME = re.compile("[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")

# One letter more than a name may have: a longer one is none, rather than its first letters.
_MENTION = re.compile("@([A-Za-z0-9_][A-Za-z0-9_.-]{0,200})")


def join(db: Database, room_id: int, name: str) -> dict[str, Any]:
    """Take a seat, or take it again; the name is made when nobody has it."""
    with db.write():
        _check_room(db, room_id)
        db.run("INSERT INTO agents (id, is_human) VALUES (?, 1) ON CONFLICT (id) DO NOTHING", name)
        if not _is_person(db, name):
            raise RoomsError(f'"{name}" is an LLM persona. Take another name.')
        row, _ = members.join(db, room_id, name, None, at_latest=False)
    return {"joined": True, "agent_id": name, "room_id": room_id, "last_read_seq": row["last_read_seq"]}


def leave(db: Database, room_id: int, name: str) -> dict[str, Any]:
    """Leave; the place in the room is kept."""
    with db.write():
        if db.value("SELECT is_human FROM agents WHERE id = ?", name) == 0:
            raise RoomsError(f'"{name}" is an LLM persona: it leaves rooms itself.')
        return {"left": members.leave(db, room_id, name), "room_id": room_id}


def seat(db: Database, room_id: int, name: str) -> dict[str, Any]:
    """Whether a person sits in a room now, and up to where the name has read."""
    with db.snapshot():
        marker = db.value("SELECT last_read_seq FROM memberships WHERE room_id = ? AND agent_id = ?", room_id, name)
        return {"joined": _sits(db, room_id, name), "last_read_seq": marker or 0}


def mark_read(db: Database, room_id: int, name: str, seq: int) -> dict[str, Any]:
    """All up to a number counts as read; it never goes back, since tabs may tell late."""
    with db.write():
        _check_seat(db, room_id, name)
        db.run(
            "UPDATE memberships SET last_read_seq = max(last_read_seq, ?), last_seen = datetime('now')"
            " WHERE room_id = ? AND agent_id = ?",
            min(seq, latest_seq(db, room_id)),
            room_id,
            name,
        )
        marker = db.value("SELECT last_read_seq FROM memberships WHERE room_id = ? AND agent_id = ?", room_id, name)
    return {"last_read_seq": marker}


def post(db: Database, room_id: int, name: str, body: str, reply_to: int | None) -> dict[str, Any]:
    """Say something."""
    check_text("The message", body)
    if units(body) > LONGEST:
        raise RoomsError(f"The message exceeds {LONGEST} characters. Shorten it.")
    named = mentions(body)
    draft = Draft("text", body, mentions=dumps(named) if named else None, reply_to=reply_to)
    with db.write():
        marker = _check_seat(db, room_id, name)
        nothing_unread = unread_count(db, room_id, name, marker) == 0
        seq = insert(db, room_id, name, draft, advance=nothing_unread)
        db.run("UPDATE memberships SET last_seen = datetime('now') WHERE room_id = ? AND agent_id = ?", room_id, name)
    return {"seq": seq}


def delete_room(db: Database, room_id: int) -> dict[str, Any]:
    """Delete a room with all that is in it. As in the agents' tool, this is nobody's right in particular."""
    with db.write():
        name = _check_room(db, room_id)
        messages, people = erase_room(db, room_id)
    db.shrink()
    return {"deleted_room": room_id, "name": name, "messages": messages, "members": people}


def mentions(body: str) -> list[str]:
    """The names after an @, each once, in their order; a dot or dash at the end is the sentence's."""
    names = (found.rstrip(".-") for found in _MENTION.findall(body))
    fitting = dict.fromkeys(name for name in names if name and len(name) <= CAPS["agent_id"])
    return list(fitting)[: CAPS["mentions_per_post"]]


def _check_room(db: Database, room_id: int) -> str:
    name: str | None = db.value("SELECT name FROM rooms WHERE id = ?", room_id)
    if name is None:
        raise RoomsError(f"There is no room {room_id}. It may have been deleted.")
    return name


def _check_seat(db: Database, room_id: int, name: str) -> int:
    """The person's read marker. Raises RoomsError."""
    if not _sits(db, room_id, name):
        raise RoomsError(f'"{name}" has no seat in this room: join the room first.')
    marker: int = db.value("SELECT last_read_seq FROM memberships WHERE room_id = ? AND agent_id = ?", room_id, name)
    return marker


def _sits(db: Database, room_id: int, name: str) -> bool:
    present = "SELECT 1 FROM memberships WHERE room_id = ? AND agent_id = ? AND left_at IS NULL"
    return _is_person(db, name) and db.one(present, room_id, name) is not None


def _is_person(db: Database, name: str) -> bool:
    return db.one("SELECT 1 FROM agents WHERE id = ? AND is_human = 1", name) is not None
