"""`simplexmcp rooms watch`: a background process that ends when there is news for a persona.

The options, exit codes and first line of output are those of the reference program's watcher.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple

from simplexmcp.rooms.bell import Bell
from simplexmcp.rooms.errors import RoomsError
from simplexmcp.rooms.jsontext import dumps
from simplexmcp.rooms.lock import alive, hold, lock_name
from simplexmcp.rooms.news import Scope, look
from simplexmcp.rooms.program import UsageError, complain, emit, emit_error, parse
from simplexmcp.rooms.settings import database_path
from simplexmcp.rooms.store.database import open_database
from simplexmcp.rooms.watching import Plan, Watcher, check_look, ended_line, owner_ended

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simplexmcp.rooms.store.database import Database

__all__ = ["HELP", "run"]

HELP = """\
Usage: simplexmcp rooms watch --agent ID [options]

Waits in the background and ends when the persona has unread messages.

  --agent ID         the persona (required)
  --room ID|NAME     only this room; digits are an ID. Without it: every room where the persona is
  --epoch N          only while the persona is held at this epoch
  --owner-pid PID    ends when this process ends; with --epoch it also says, every 2 minutes, that the persona listens
  --mentions-only    only messages that mention the persona or answer it
  --interval S       look every S seconds (5 to 3600) instead of at once
  --timeout S        give up after S seconds (1 to 86400); 1200 when not given
  --ok-on-timeout    giving up is exit 0, with has_updates false
  --follow           never ends: one line each time there is news, at most one a second and 500 bytes long;
                     without end unless --timeout is given
  --help             this text

Exit codes: 0 there is news (one line of JSON), or with --ok-on-timeout a quiet end; 124 a quiet end; 2 cannot watch
(the reason is on stderr); 129, 130 and 143 after the signals HUP, INT and TERM.
"""
_VALUED = ("--agent", "--room", "--epoch", "--owner-pid", "--interval", "--timeout", "--db", "--since")
_FLAGS = ("--mentions-only", "--ok-on-timeout", "--follow", "--help", "-h")
_PROGRAM = "agent-chat-poller"
_USAGE = "Usage: simplexmcp rooms watch --agent ID [options] (--help shows them)"
_TIMEOUT = 1200
_QUIET = 124
_BUSY_MS = 2000
_LARGEST = 2**53 - 1
_LARGEST_PID = 2**31 - 1


class _Order(NamedTuple):
    agent: str
    room: str | None
    epoch: int | None
    owner: int | None
    mentions_only: bool
    interval: int | None
    timeout: int | None
    ok_on_timeout: bool
    follow: bool
    path: str


def run(argv: Sequence[str]) -> int:
    """The program; its exit code. Errors become one line on stderr."""
    try:
        order = _order(argv)
    except UsageError as error:
        complain(_PROGRAM, f"{error}\n{_USAGE}")
        return 2
    if order is None:
        sys.stdout.write(HELP)
        return 0
    try:
        return _watch(order)
    except BrokenPipeError:
        complain(_PROGRAM, "nobody reads the output any more.")
    except RoomsError as error:
        complain(_PROGRAM, str(error))
        if order.follow:
            with suppress(BrokenPipeError):  # stderr has it
                emit(ended_line(error))  # clients that show a model each line show it none of stderr
    return 2


def _order(argv: Sequence[str]) -> _Order | None:
    """What was asked for; None when it was help."""
    options = parse(argv, _VALUED, _FLAGS)
    if options.flag("--help"):
        return None
    if options.text("--since", 500) is not None:
        raise UsageError(
            "--since is intentionally unsupported: a watcher starts at the persona's read marker, as it is now."
        )
    agent = options.text("--agent", 200)
    if agent is None:
        raise UsageError("--agent is required.")
    follow = options.flag("--follow")
    return _Order(
        agent=agent,
        room=options.text("--room", 500),
        epoch=options.number("--epoch", 1, _LARGEST),
        owner=options.number("--owner-pid", 1, _LARGEST_PID),
        mentions_only=options.flag("--mentions-only"),
        interval=options.number("--interval", 5, 3600, "seconds"),
        timeout=options.number("--timeout", 1, 86_400, "seconds") or (None if follow else _TIMEOUT),
        ok_on_timeout=options.flag("--ok-on-timeout"),
        follow=follow,
        path=database_path(options.text("--db", 4096)),
    )


def _watch(order: _Order) -> int:
    begun = time.monotonic()
    if order.owner is not None and not alive(order.owner):
        raise owner_ended(order.owner)
    if order.path == ":memory:":
        raise RoomsError("a database in memory cannot be watched from another process.")
    path = os.path.realpath(order.path)
    with closing(open_database(path, create=False, read_only=True, busy_ms=_BUSY_MS)) as database:
        scope = _scope(database, order)
        check_look(scope, look(database, scope))
        deadline = None if order.timeout is None else begun + order.timeout
        plan = Plan(scope, order.interval, deadline, order.follow, order.owner)
        if plan.beats:
            database.run("PRAGMA query_only=OFF")  # for the signs of life alone
        name = lock_name(path, order.agent, scope.room_id, order.epoch, mentions_only=order.mentions_only)
        with Bell(path, order.owner, instant=order.interval is None) as bell, hold(name):
            hit = Watcher(database, plan, bell, emit).run()
            if bell.signal is not None:
                return 128 + bell.signal
    if hit or order.follow:
        return 0
    return _quiet(order)


def _quiet(order: _Order) -> int:
    if order.ok_on_timeout:
        emit(dumps({"has_updates": False, "timed_out": True}))
        return 0
    emit_error(dumps({"timed_out": True}))
    return _QUIET


def _scope(database: Database, order: _Order) -> Scope:
    """What is watched; a room is named by its ID or its exact name. Raises RoomsError without such a room."""
    room_id: int | None = None
    if order.room is not None:
        digits = order.room.isascii() and order.room.isdigit()
        column, value = ("id", min(int(order.room), _LARGEST)) if digits else ("name", order.room)
        room_id = database.value(f"SELECT id FROM rooms WHERE {column} = ?", value)
        if room_id is None:
            raise RoomsError(f'no room "{order.room}" in this database. list_rooms shows the rooms that there are.')
    return Scope(order.agent, room_id, order.epoch, order.mentions_only)
