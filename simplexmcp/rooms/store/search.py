"""Full-text search: FTS5's own language first; ordinary text that it cannot read is searched for word by word.

IDs are ranked first, and only the page's rows are read. Whether a hit is in the right room is looked up for the best
ones alone; ranking with the rooms joined in costs half as much again, so it comes second.
"""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, Any, NamedTuple

from simplexmcp.rooms.errors import DatabaseError, RoomsError
from simplexmcp.rooms.pages import DEFAULT_BUDGET, fill, remainder
from simplexmcp.rooms.store.messages import drafts, fetch_each
from simplexmcp.rooms.store.personas import disclosure
from simplexmcp.rooms.texts import CAPS, check_text

if TYPE_CHECKING:
    from simplexmcp.rooms.runtime import Binding
    from simplexmcp.rooms.store.database import Database

__all__ = ["Filter", "ranked", "search"]

_SPARE = 200  # hits beyond the page that are ranked at first, since some may be in other rooms
_AT_ONCE = 500
_OPERATOR = re.compile(r"(?<!\S)(?:AND|OR|NOT|NEAR)(?!\S)|NEAR\s*\(")


class Filter(NamedTuple):
    """Which messages count: those of one room, or (None) of all where the reader is present; of one author; written
    at or after a time (epoch seconds)."""

    room_id: int | None
    author: str | None = None
    since: int | None = None


def search(db: Database, binding: Binding, query: str, which: Filter, *, limit: int, offset: int) -> dict[str, Any]:
    """The messages that fit, best first. Raises RoomsError with SQLite's words for a query that cannot be read."""
    check_text("query", query, CAPS["search_query"])
    with db.snapshot():
        lost = disclosure(db, binding)
        ids, interpreted = ranked(db, binding.agent_id, query, which, offset + limit + 1)
        note = {"interpreted_as": interpreted} if interpreted is not None else {}
        left = remainder(DEFAULT_BUDGET, {**lost, "matches": [], "byte_limited": True, "next_offset": 2**53, **note})
        fetched = fetch_each(db, ids[offset : offset + limit], budget=left)
        found = drafts(db, fetched.rows)
        if which.room_id is None:
            for draft, row in zip(found, fetched.rows, strict=True):
                name = db.value("SELECT name FROM rooms WHERE id = ?", row["room_id"])
                draft.message.update(room_id=row["room_id"], room_name=name)
        page = fill(found, left)
        reached = offset + len(page.messages)
        return {
            **lost,
            "matches": page.messages,
            **({"byte_limited": True} if page.byte_limited or fetched.cut else {}),
            **({"next_offset": reached} if reached < len(ids) else {}),
            **note,
        }


def ranked(db: Database, reader: str, query: str, which: Filter, count: int) -> tuple[list[int], str | None]:
    """The best `count` IDs; and the query that was asked instead, if the given one could not be read. Raises RoomsError
    with SQLite's words when none can."""
    try:
        return _matching(db, reader, query, which, count), None
    except DatabaseError as error:
        if not _is_about_the_query(error):
            raise
        unreadable = error
    if (words := _quoted(query)) is not None:
        try:
            return _matching(db, reader, words, which, count), words
        except DatabaseError as error:
            if not _is_about_the_query(error):
                raise
    raise RoomsError(
        f'The query cannot be read ({unreadable.detail}). Put words that hold signs in quotes, like "a-b".'
    ) from unreadable


def _is_about_the_query(error: DatabaseError) -> bool:
    cause = error.__cause__
    return isinstance(cause, sqlite3.Error) and cause.sqlite_errorcode & 0xFF == sqlite3.SQLITE_ERROR


def _matching(db: Database, reader: str, query: str, which: Filter, count: int) -> list[int]:
    """Best first, equal ones by age: from the best of all rooms when they are enough, else from this room's alone."""
    most = 2 * count + _SPARE
    best = [
        row["rowid"]
        for row in db.all(
            "SELECT rowid FROM messages_fts WHERE messages_fts MATCH ? ORDER BY rank, rowid LIMIT ?", query, most
        )
    ]
    condition, values = _condition(reader, which)
    counting: set[int] = set()
    for start in range(0, len(best), _AT_ONCE):
        some = best[start : start + _AT_ONCE]
        marks = ",".join("?" * len(some))
        rows = db.all(f"SELECT m.id FROM messages m WHERE m.id IN ({marks}) AND {condition}", *some, *values)
        counting.update(row["id"] for row in rows)
    here = [key for key in best if key in counting]
    if len(here) >= count or len(best) < most:
        return here[:count]
    rows = db.all(
        "SELECT m.id FROM messages_fts f JOIN messages m ON m.id = f.rowid"
        f" WHERE messages_fts MATCH ? AND {condition} ORDER BY f.rank, m.id LIMIT ?",
        *(query, *values, count),
    )
    return [row["id"] for row in rows]


def _condition(reader: str, which: Filter) -> tuple[str, list[Any]]:
    """The condition and its values; the plus signs keep SQLite from walking an index of the room instead of the IDs."""
    parts: list[str] = []
    values: list[Any] = []
    if which.room_id is None:
        parts.append("+m.room_id IN (SELECT room_id FROM memberships WHERE agent_id = ? AND left_at IS NULL)")
        values.append(reader)
    else:
        parts.append("+m.room_id = ?")
        values.append(which.room_id)
    if which.author is not None:
        parts.append("+m.agent_id = ?")
        values.append(which.author)
    if which.since is not None:
        parts.append("m.created_at >= datetime(?, 'unixepoch')")
        values.append(which.since)
    return " AND ".join(parts), values


def _quoted(query: str) -> str | None:
    """The query with every word quoted; None when it is meant as FTS5 (quotes, operators, open brackets) or holds no
    word at all."""
    if '"' in query or query.count("(") != query.count(")") or _OPERATOR.search(query):
        return None
    words = [word for word in query.split() if any(letter.isalnum() for letter in word)]
    if not words:
        return None
    return " ".join(f'"{word[:-1]}"*' if word.endswith("*") else f'"{word}"' for word in words)
