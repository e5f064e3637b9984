"""`simplexmcp rooms check`: how much a persona, or anybody since a number, has not read. For scripts; only reads."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from simplexmcp.rooms.errors import RoomsError
from simplexmcp.rooms.jsontext import dumps
from simplexmcp.rooms.program import UsageError, complain, emit, parse
from simplexmcp.rooms.settings import database_path
from simplexmcp.rooms.store.database import open_database
from simplexmcp.rooms.store.unread import directed_count, latest_seq, rooms_with_unread, unread_count

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from simplexmcp.rooms.store.database import Database

__all__ = ["HELP", "run"]

HELP = """\
Usage: simplexmcp rooms check --agent ID [--room ID|NAME] [options]
       simplexmcp rooms check --room ID|NAME --since SEQ

Tells once how many messages of others a persona has not read, as one line of JSON.

  --agent ID         the persona
  --room ID|NAME     only this room, by its ID or its exact name; without it every room where the persona is
  --since SEQ        count from this number of the room instead of the persona's read marker
  --mentions-only    only messages that mention the persona or answer it count as updates
  --help             this text

Exit codes: 0 there are updates, 1 none, 2 cannot tell (the reason is on stderr).
"""
_VALUED = ("--agent", "--room", "--since", "--db")
_FLAGS = ("--mentions-only", "--help", "-h")
_PROGRAM = "agent-chat-check"
_BUSY_MS = 2000
_LARGEST = 2**53 - 1
_LISTED = 20


class _Question(NamedTuple):
    agent: str | None
    room: str | None
    since: int | None
    mentions_only: bool
    path: str


def run(argv: Sequence[str]) -> int:
    """The program; its exit code. Errors become one line on stderr."""
    try:
        question = _question(argv)
        if question is None:
            sys.stdout.write(HELP)
            return 0
        answer = _answer(question)
        emit(dumps(answer))
    except UsageError as error:
        complain(_PROGRAM, f"{error}\nUsage: simplexmcp rooms check --agent ID [options] (--help shows them)")
        return 2
    except RoomsError as error:
        complain(_PROGRAM, str(error))
        return 2
    except BrokenPipeError:
        complain(_PROGRAM, "nobody reads the output any more.")
        return 2
    return 0 if answer["has_updates"] else 1


def _question(argv: Sequence[str]) -> _Question | None:
    """What was asked; None when it was help."""
    options = parse(argv, _VALUED, _FLAGS)
    if options.flag("--help"):
        return None
    agent, room = options.text("--agent", 200), options.text("--room", 500)
    since = options.number("--since", 0, _LARGEST)
    if since is not None and room is None:
        raise UsageError("--since requires --room: numbers belong to one room.")
    if agent is None and options.flag("--mentions-only"):
        raise UsageError("--mentions-only requires --agent.")
    if agent is None and since is None:
        raise UsageError("--agent is required, unless --room and --since are given.")
    path = database_path(options.text("--db", 4096))
    return _Question(agent, room, since, options.flag("--mentions-only"), path)


def _answer(question: _Question) -> dict[str, Any]:
    if question.path == ":memory:":
        raise RoomsError("a database in memory cannot be read from another process.")
    with (
        closing(open_database(question.path, create=False, read_only=True, busy_ms=_BUSY_MS)) as database,
        database.snapshot(),
    ):
        if question.room is not None:
            return _one_room(database, question, question.room)
        assert question.agent is not None  # else there is a room
        return _all_rooms(database, question.agent, mentions_only=question.mentions_only)


def _one_room(db: Database, question: _Question, reference: str) -> dict[str, Any]:
    room = _room(db, reference)
    baseline = question.since
    if question.agent is not None:
        marker = _marker(db, room, question.agent)
        baseline = marker if baseline is None else baseline
    assert baseline is not None  # there is an agent or --since
    agent = question.agent or ""  # nobody's ID: nothing is its own, nothing directed at it
    unread = unread_count(db, room["id"], agent, baseline)
    directed = directed_count(db, room["id"], agent, baseline) if agent else 0
    return {
        "room_id": room["id"],
        "agent": question.agent,
        "baseline_seq": baseline,
        "latest_seq": latest_seq(db, room["id"]),
        "unread": unread,
        "unread_mentions": directed,
        "mentions_only": question.mentions_only,
        "has_updates": (directed if question.mentions_only else unread) > 0,
    }


def _all_rooms(db: Database, agent: str, *, mentions_only: bool) -> dict[str, Any]:
    joined, present = _memberships(db, agent)
    if not joined:
        raise RoomsError(f'no_room_memberships: "{agent}" is in no room of this database.')
    if not present:
        raise RoomsError(f'left_all_rooms: "{agent}" left every room that it had joined.')
    rooms = rooms_with_unread(db, agent)
    listed = [room for room in rooms if room["directed"]] if mentions_only else rooms
    listed.sort(key=lambda room: (-room["directed"], -room["unread"], room["room_id"]))
    answer: dict[str, Any] = {
        "agent": agent,
        "rooms": present,
        "unread": sum(room["unread"] for room in rooms),
        "unread_mentions": sum(room["directed"] for room in rooms),
        "mentions_only": mentions_only,
        "has_updates": bool(listed),
    }
    if listed:
        answer["rooms_with_updates"] = listed[:_LISTED]
    if len(listed) > _LISTED:
        answer["rooms_with_updates_truncated"] = True
    return answer


def _room(db: Database, reference: str) -> sqlite3.Row:
    """The room with this ID, or else exactly this name. Raises RoomsError."""
    row = None
    if reference.isascii() and reference.isdigit() and int(reference) <= _LARGEST:
        row = db.one("SELECT id, name FROM rooms WHERE id = ?", int(reference))
    row = row or db.one("SELECT id, name FROM rooms WHERE name = ?", reference)
    if row is None:
        raise RoomsError(f'no room "{reference}" in this database.')
    return row


def _marker(db: Database, room: sqlite3.Row, agent: str) -> int:
    row = db.one("SELECT last_read_seq, left_at FROM memberships WHERE room_id = ? AND agent_id = ?", room["id"], agent)
    if row is None:
        raise RoomsError(f'"{agent}" is not a member of room "{room["name"]}": it never joined.')
    if row["left_at"] is not None:
        raise RoomsError(f'"{agent}" has LEFT room "{room["name"]}".')
    return int(row["last_read_seq"])


def _memberships(db: Database, agent: str) -> tuple[int, int]:
    """In how many rooms the persona ever was, and is."""
    row = db.one("SELECT count(*), sum(left_at IS NULL) FROM memberships WHERE agent_id = ?", agent)
    assert row is not None  # a count is always one row
    return int(row[0]), int(row[1] or 0)
