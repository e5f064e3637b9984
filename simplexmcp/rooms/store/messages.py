"""Messages out of the database, as clients read them.

Rows are read one by one and only until the budget is full, each body cut by SQLite, so that memory stays small
whatever was posted. What a page needs beside its rows (parents, later versions) comes with one query each.
"""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from simplexmcp.rooms.jsontext import loads, size, units
from simplexmcp.rooms.pages import Draft, fill
from simplexmcp.rooms.store.unread import unread_count

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Generator, Iterable, Iterator

    from simplexmcp.rooms.store.database import Database

__all__ = ["MESSAGE_COLUMNS", "Fetched", "crossed_page", "drafts", "fetch", "fetch_each", "is_directed", "mentioned"]

# The first bound value, ?1, is how many code points of a body are read.
MESSAGE_COLUMNS = """m.id, m.room_id, m.seq, m.agent_id, m.format, m.priority, substr(m.body, 1, ?1) AS body,
  CASE WHEN m.body_len > ?1 THEN length(m.body) END AS length, m.mentions, m.reply_to_seq, m.reply_to_agent,
  m.supersedes_seq, datetime(m.created_at, 'localtime') AS at,
  CAST(strftime('%s', m.created_at) AS INTEGER) AS unix"""
_CROSSED_ROWS = 20
_CROSSED_BUDGET = 20_000
_PREVIEW = 100
_PREVIEW_READ = 2000  # code points of a parent: enough for a preview unless it starts with more blanks than that
_AT_ONCE = 500  # values of one query
_HUGE = re.compile("[0-9][eE][+]?[0-9]{3}")  # only with such an exponent may a number be infinite here
_DEEPEST = 300  # levels of a structured body; a deeper one is given as text
# The blanks of JavaScript, which are not quite Python's.
_BLANKS = re.compile("[\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+")


class Fetched(NamedTuple):
    """Rows within a budget; `cut`: more were there, but the budget was full."""

    rows: list[sqlite3.Row]
    cut: bool


def fetch(db: Database, rest: str, *values: Any, budget: int, preview: int | None = None) -> Fetched:
    """The rows of `SELECT MESSAGE_COLUMNS FROM messages m <rest>`; its bound values are ?2 and on."""
    return _within(db.rows(f"SELECT {MESSAGE_COLUMNS} FROM messages m {rest}", _cap(budget, preview), *values), budget)


def fetch_each(db: Database, ids: Iterable[int], *, budget: int, preview: int | None = None) -> Fetched:
    """The rows of these global IDs, in their order; the ones that are gone are left out."""
    sql = f"SELECT {MESSAGE_COLUMNS} FROM messages m WHERE m.id = ?2"
    found = (row for key in ids for row in db.all(sql, _cap(budget, preview), key))
    return _within(found, budget)


def drafts(db: Database, rows: list[sqlite3.Row]) -> list[Draft]:
    """The rows as messages, before a budget cuts them."""
    parents: dict[tuple[int, int], sqlite3.Row] = {}
    later: dict[tuple[int, int], int] = {}
    for room_id in {row["room_id"] for row in rows}:
        here = [row for row in rows if row["room_id"] == room_id]
        for row in _parents(db, room_id, {row["reply_to_seq"] for row in here if row["reply_to_seq"] is not None}):
            parents[room_id, row["seq"]] = row
        for row in _later(db, room_id, [row["seq"] for row in here]):
            later[room_id, row["supersedes_seq"]] = row["latest"]
    return [
        _draft(row, parents.get((row["room_id"], row["reply_to_seq"])), later.get((row["room_id"], row["seq"])))
        for row in rows
    ]


def is_directed(row: sqlite3.Row, agent_id: str) -> bool:
    """Whether a message mentions the persona or answers a message of it."""
    return row["reply_to_agent"] == agent_id or agent_id in (mentioned(row["mentions"]) or ())


def mentioned(stored: str | None) -> list[str] | None:
    """The IDs that a stored list of mentions holds; None without a list. What another program left there that is none
    must not keep the message, and all that follow it, from being read."""
    try:
        value = None if stored is None else loads(stored)
    except (ValueError, RecursionError):
        return None
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else None


def crossed_page(
    db: Database, room_id: int, agent_id: str, after_seq: int, preview_chars: int
) -> tuple[list[dict[str, Any]], int]:
    """The oldest messages of others above `after_seq`, at most 20 and 20,000 units, each with `directed`; and how many
    more there are. Consumes nothing."""
    fetched = fetch(
        db,
        "WHERE m.room_id = ?2 AND m.seq > ?3 AND m.agent_id <> ?4 ORDER BY m.seq LIMIT ?5",
        *(room_id, after_seq, agent_id, _CROSSED_ROWS),
        budget=_CROSSED_BUDGET,
        preview=preview_chars,
    )
    found = drafts(db, fetched.rows)
    for draft, row in zip(found, fetched.rows, strict=True):
        draft.message["directed"] = is_directed(row, agent_id)
    messages = fill(found, _CROSSED_BUDGET).messages
    last = messages[-1]["seq"] if messages else after_seq
    return messages, unread_count(db, room_id, agent_id, last)


def _cap(budget: int, preview: int | None) -> int:
    return budget if preview is None else min(budget, preview)


def _within(rows: Generator[sqlite3.Row], budget: int) -> Fetched:
    """Reads until bodies and mentions fill the budget; one row more is looked at, to know whether there is one."""
    kept: list[sqlite3.Row] = []
    used = 0
    with closing(rows) as remaining:
        for row in remaining:
            if kept and used >= budget:
                return Fetched(kept, cut=True)
            kept.append(row)
            used += units(row["body"]) + units(row["mentions"] or "")
    return Fetched(kept, cut=False)


def _parents(db: Database, room_id: int, seqs: set[int]) -> Iterator[sqlite3.Row]:
    for some in _chunks(sorted(seqs)):
        yield from db.all(
            f"SELECT seq, agent_id, substr(body, 1, {_PREVIEW_READ}) AS body, body_len FROM messages"
            f" WHERE room_id = ? AND seq IN ({_marks(some)})",
            room_id,
            *some,
        )


def _later(db: Database, room_id: int, seqs: list[int]) -> Iterator[sqlite3.Row]:
    for some in _chunks(seqs):
        yield from db.all(
            "SELECT supersedes_seq, max(seq) AS latest FROM messages"
            f" WHERE room_id = ? AND supersedes_seq IN ({_marks(some)}) GROUP BY supersedes_seq",
            room_id,
            *some,
        )


def _chunks(values: list[int]) -> Iterator[list[int]]:
    return (values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE))


def _marks(values: list[int]) -> str:
    return ",".join("?" * len(values))


def _draft(row: sqlite3.Row, parent: sqlite3.Row | None, superseded_by: int | None) -> Draft:
    body, length = row["body"], row["length"]
    content: Any = body
    if length is None or length <= len(body):  # `length` is there when UTF-16 units, not code points, pass the cap
        length = len(body)
        if row["format"] == "json":
            content = _parsed(body)
    message: dict[str, Any] = {"seq": row["seq"], "from": row["agent_id"], "format": row["format"]}
    if row["priority"]:
        message["priority"] = True
    message["content"] = content
    message["to"] = mentioned(row["mentions"])
    message["reply_to"] = None if row["reply_to_seq"] is None else _reply(row["reply_to_seq"], parent)
    message["at"] = row["at"]
    message["unix"] = row["unix"]
    if length > len(body):
        message["truncated"] = True
        message["length"] = length
    if row["supersedes_seq"] is not None:
        message["supersedes"] = row["supersedes_seq"]
    if superseded_by is not None:
        message["superseded_by"] = superseded_by
    return Draft(message, body, length)


def _parsed(body: str) -> Any:
    """A structured body's value; what cannot be written again (too deep, no finite number) stays text."""
    try:
        value = loads(body)
    except (ValueError, RecursionError):
        return body
    if body.count("[") + body.count("{") > _DEEPEST and _depth(value) > _DEEPEST:
        return body
    return body if _HUGE.search(body) and _has_infinity(value) else value


def _has_infinity(value: Any) -> bool:
    try:
        size(value)
    except ValueError:
        return True
    return False


def _depth(value: Any) -> int:
    deepest = 0
    waiting = [(value, 1)]
    while waiting:
        inner, level = waiting.pop()
        deepest = max(deepest, level)
        if isinstance(inner, dict | list):
            waiting += [(each, level + 1) for each in (inner.values() if isinstance(inner, dict) else inner)]
    return deepest


def _reply(seq: int, parent: sqlite3.Row | None) -> dict[str, Any]:
    if parent is None:
        return {"seq": seq, "from": None, "preview": ""}
    text = _BLANKS.sub(" ", parent["body"]).strip(" ")
    longer = len(text) > _PREVIEW or parent["body_len"] > units(parent["body"])
    return {"seq": seq, "from": parent["agent_id"], "preview": text[:_PREVIEW] + "..." if longer else text}
