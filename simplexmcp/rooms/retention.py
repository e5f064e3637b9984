"""`simplexmcp rooms retention`: how many messages a room keeps, and for how long."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

from simplexmcp.errors import UserError
from simplexmcp.rooms.program import UsageError, emit, parse
from simplexmcp.rooms.settings import database_path
from simplexmcp.rooms.store.database import open_database
from simplexmcp.rooms.store.pruning import BATCH, Retention, apply_retention, retention, set_retention
from simplexmcp.rooms.store.rooms import find_room
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simplexmcp.rooms.program import Options
    from simplexmcp.rooms.store.database import Database

__all__ = ["HELP", "run"]

HELP = """\
usage: simplexmcp rooms retention ROOM [--keep-last N] [--max-age DAYS]
       simplexmcp rooms retention ROOM --off

Shows or sets how long a room keeps its messages. ROOM is its ID or its exact name. A message that a member, also one
who left, has not read is kept in any case, and so is the newest one. The rule is applied now, and then about once an
hour while somebody posts.

  --keep-last N      keep the newest N messages (1 to 1000000000)
  --max-age DAYS     keep messages for so many days (1 to 36500)
  --off              keep all messages
  --db PATH          another database than the usual one
  --help             this text

Exit codes: 0 done, 1 failed, 2 wrong usage.
"""
_MOST = 1_000_000_000
_LONGEST = 36_500


def run(argv: Sequence[str]) -> int:
    """The command; its exit code. Raises UserError and RoomsError."""
    if not argv:
        sys.stdout.write(HELP)
        return 2
    try:
        options = parse(argv, ("--keep-last", "--max-age", "--db"), ("--off", "--help", "-h"), words=1)
        rule = Retention(options.number("--keep-last", 1, _MOST), options.number("--max-age", 1, _LONGEST, "days"))
        path = options.text("--db", 4096)
    except UsageError as error:
        raise UserError(f"{error} See simplexmcp rooms retention --help", 2) from error
    if options.flag("--help"):
        sys.stdout.write(HELP)
        return 0
    if not options.words:
        raise UserError("name the room. See simplexmcp rooms retention --help", 2)
    if options.flag("--off") and any(rule):
        raise UserError("--off cannot be combined with --keep-last or --max-age.", 2)
    with closing(open_database(database_path(path), create=False)) as db:
        _change_and_show(db, options.words[0], rule, options)
    return 0


def _change_and_show(db: Database, reference: str, rule: Retention, options: Options) -> None:
    room = find_room(db, reference)
    name = printable(room["name"])
    change = options.flag("--off") or any(rule)
    if change:
        with db.write():
            set_retention(db, room["id"], rule if any(rule) else None)
    found = retention(db, room["id"])
    if found is None:
        emit(f'Room "{name}" keeps all its messages.')
        return
    emit(f'Room "{name}" {_sentence(found)}')
    if change:
        emit(f"Deleted now: {_apply(db, room['id'])}. What a member has not read is kept.")


def _sentence(rule: Retention) -> str:
    parts: list[str] = []
    if rule.keep_last is not None:
        parts.append(f"the newest {rule.keep_last} messages")
    if rule.max_age_days is not None:
        parts.append(f"what is at most {rule.max_age_days} days old")
    return f"keeps {', of these '.join(parts)}."


def _apply(db: Database, room_id: int) -> int:
    total = 0
    while True:
        deleted = apply_retention(db, room_id)
        total += deleted
        if deleted < BATCH:
            return total
