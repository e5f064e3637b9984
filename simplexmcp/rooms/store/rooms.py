"""Rooms: finding, making, listing, describing and deleting them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexmcp.rooms.errors import RoomsError
from simplexmcp.rooms.store.personas import check_epoch
from simplexmcp.rooms.texts import CAPS, check_text, is_unstorable

if TYPE_CHECKING:
    import sqlite3

    from simplexmcp.rooms.runtime import Binding
    from simplexmcp.rooms.store.database import Database

__all__ = [
    "DELETED",
    "create_room",
    "delete_room",
    "erase_room",
    "find_room",
    "list_rooms",
    "lookup_room",
    "room_row",
    "set_pinned",
]

DELETED = "This room no longer exists: it was deleted. list_rooms shows the others, create_room makes a new one."
_LARGEST_ID = 2**53 - 1
_COLUMNS = "id, name, description, pinned, created_at"


def find_room(db: Database, reference: str) -> sqlite3.Row:
    """The room with this ID (a reference of digits) or exactly this name. Raises RoomsError."""
    row = lookup_room(db, reference)
    if row is None:
        raise RoomsError(f'There is no room "{reference}". list_rooms shows the rooms that there are.')
    return row


def lookup_room(db: Database, reference: str) -> sqlite3.Row | None:
    """The same, None without one."""
    row = None
    if reference.isascii() and reference.isdigit() and (number := int(reference)) <= _LARGEST_ID:
        row = db.one(f"SELECT {_COLUMNS} FROM rooms WHERE id = ?", number)
    if row is None and not is_unstorable(reference):
        row = db.one(f"SELECT {_COLUMNS} FROM rooms WHERE name = ?", reference)
    return row


def room_row(db: Database, room_id: int) -> sqlite3.Row:
    """The room with this ID. Raises RoomsError when it was deleted."""
    row = db.one(f"SELECT {_COLUMNS} FROM rooms WHERE id = ?", room_id)
    if row is None:
        raise RoomsError(DELETED)
    return row


def create_room(db: Database, binding: Binding, name: str, description: str | None, pinned: str | None) -> int:
    """Makes a room that nobody is in yet: its ID. Raises RoomsError."""
    _check_name(name)
    if description is not None:
        check_text("description", description, CAPS["room_description"])
    if pinned is not None:
        check_text("pinned", pinned, CAPS["pinned_intro"])
    with db.write():
        check_epoch(db, binding)
        added = db.run(
            "INSERT INTO rooms (name, description, pinned) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING",
            name,
            description,
            pinned,
        )
        if not added.rowcount:
            raise RoomsError(f'a room named "{name}" already exists. Join it with join_room, or take another name.')
        room_id = added.lastrowid
    assert room_id is not None
    return room_id


def list_rooms(db: Database, limit: int, after_id: int, chars: int) -> tuple[list[dict[str, Any]], int]:
    """The rooms after an ID, one more than `limit` when there are more, and how many rooms there are in all. Of long
    texts the first `chars` code points."""
    with db.snapshot():
        rows = db.all(
            "SELECT id, name, substr(description, 1, ?1) AS description, substr(pinned, 1, ?1) AS pinned, created_at,"
            " (SELECT count(*) FROM memberships m WHERE m.room_id = rooms.id AND m.left_at IS NULL) AS members,"
            " (SELECT count(*) FROM messages m WHERE m.room_id = rooms.id) AS messages,"
            " (SELECT created_at FROM messages m WHERE m.room_id = rooms.id ORDER BY seq DESC LIMIT 1) AS last_activity"
            " FROM rooms WHERE id > ?2 ORDER BY id LIMIT ?3",
            chars,
            after_id,
            limit + 1,
        )
        total = db.value("SELECT count(*) FROM rooms")
    return [dict(row) for row in rows], total


def set_pinned(db: Database, room_id: int, text: str | None) -> None:
    """Changes the pinned text, inside a transaction."""
    db.run("UPDATE rooms SET pinned = ? WHERE id = ?", text, room_id)


def delete_room(db: Database, binding: Binding, room: sqlite3.Row) -> tuple[int, int]:
    """Deletes a room with all that is in it: how many messages and members it had. Raises RoomsError."""
    with db.write():
        check_epoch(db, binding)
        room_row(db, room["id"])
        erased = erase_room(db, room["id"])
    db.shrink()
    return erased


def erase_room(db: Database, room_id: int) -> tuple[int, int]:
    """Inside a transaction: deletes a room with all that is in it: how many messages and members it had."""
    messages = db.run("DELETE FROM messages WHERE room_id = ?", room_id).rowcount
    members = db.run("DELETE FROM memberships WHERE room_id = ?", room_id).rowcount
    for table in ("claims", "wait_leases"):
        db.run(f"DELETE FROM {table} WHERE room_id = ?", room_id)
    db.run("DELETE FROM rooms WHERE id = ?", room_id)
    return messages, members


def _check_name(name: str) -> None:
    check_text("name", name, CAPS["room_name"])
    if not name.strip():
        raise RoomsError("name must be non-blank.")
    if name != name.strip():
        raise RoomsError("name must not begin or end with blanks.")
    if name.isascii() and name.isdigit():
        raise RoomsError("name must not be digits alone, since those would be read as a room's id.")
