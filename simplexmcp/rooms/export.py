"""`simplexmcp rooms export`: a room's messages as Markdown to read, or as lines of JSON to work with.

What others wrote is foreign text: in Markdown it is quoted line by line, and on a terminal nothing of it is active.
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

from simplexmcp.errors import UserError
from simplexmcp.rooms.jsontext import dumps, loads
from simplexmcp.rooms.program import UsageError, emit, parse
from simplexmcp.rooms.settings import database_path
from simplexmcp.rooms.store.database import open_database
from simplexmcp.rooms.store.exporting import all_messages
from simplexmcp.rooms.store.messages import mentioned
from simplexmcp.rooms.store.rooms import find_room
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["HELP", "run"]

HELP = """\
usage: simplexmcp rooms export ROOM [--format md|jsonl]

Writes all messages of a room, oldest first, to stdout. ROOM is its ID or its exact name.

  --format md       Markdown, for people (the default)
  --format jsonl    one JSON object a line, each with the whole message
  --db PATH         another database than the usual one
  --help            this text

Exit codes: 0 done, 1 failed, 2 wrong usage.
"""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def run(argv: Sequence[str]) -> int:
    """The command; its exit code. Raises UserError and RoomsError."""
    if not argv:
        sys.stdout.write(HELP)
        return 2
    try:
        options = parse(argv, ("--format", "--db"), ("--help", "-h"), words=1)
        form = options.text("--format", 20) or "md"
        path = options.text("--db", 4096)
    except UsageError as error:
        raise UserError(f"{error} See simplexmcp rooms export --help", 2) from error
    if options.flag("--help"):
        sys.stdout.write(HELP)
        return 0
    if not options.words:
        raise UserError("name the room. See simplexmcp rooms export --help", 2)
    if form not in ("md", "jsonl"):
        raise UserError(f'--format is md or jsonl, not "{printable(form)}".', 2)
    on_terminal = sys.stdout.isatty()
    with closing(open_database(database_path(path), create=False, read_only=True)) as db:
        room = find_room(db, options.words[0])
        with closing(all_messages(db, room["id"])) as messages:
            if form == "md":
                return _write(_markdown(room, messages, on_terminal=on_terminal))
            lines = _json_lines(messages)
            # On a terminal every letter beyond ASCII is an escape, which keeps the JSON what it is.
            return _write((json.dumps(json.loads(line)) for line in lines) if on_terminal else lines)


def _write(lines: Iterator[str]) -> int:
    try:
        for line in lines:
            emit(line)
    except BrokenPipeError as error:
        raise UserError("nobody reads the output any more; the export is not complete.", 1) from error
    return 0


def _json_lines(messages: Iterator[sqlite3.Row]) -> Iterator[str]:
    for row in messages:
        yield dumps(
            {
                "seq": row["seq"],
                "from": row["agent_id"],
                **{key: row[key] for key in ("brand", "model", "version")},
                "is_human": bool(row["is_human"]),
                "format": row["format"],
                "priority": bool(row["priority"]),
                "content": _content(row),
                "to": mentioned(row["mentions"]),
                "reply_to_seq": row["reply_to_seq"],
                "reply_to_agent": row["reply_to_agent"],
                "supersedes_seq": row["supersedes_seq"],
                "client_message_id": row["client_message_id"],
                "at": row["at"],
                "unix": row["unix"],
            }
        )


def _content(row: sqlite3.Row) -> Any:
    if row["format"] == "json":
        try:
            return loads(row["body"])
        except ValueError:
            return row["body"]  # another program's idea of JSON: better as it is than not at all
    return row["body"]


def _markdown(room: sqlite3.Row, messages: Iterator[sqlite3.Row], *, on_terminal: bool) -> Iterator[str]:
    shown = printable if on_terminal else _without_controls
    yield f"# {_name(room['name'])}"
    for text in (room["description"], room["pinned"]):
        if text:
            yield ""
            yield from _quoted(text, shown)
    for row in messages:
        yield ""
        yield _heading(row)
        yield ""
        if row["format"] == "json":
            yield from _fenced(row["body"], shown)
        else:
            yield from _quoted(row["body"], shown)


def _heading(row: sqlite3.Row) -> str:
    words = [f"## {row['seq']}. {_name(row['agent_id'])}, {row['at']}"]
    if row["priority"]:
        words.append("priority")
    if names := mentioned(row["mentions"]):
        words.append("to " + ", ".join(_name(name) for name in names))
    if row["reply_to_seq"] is not None:
        words.append(f"answers {row['reply_to_seq']}")
    if row["supersedes_seq"] is not None:
        words.append(f"replaces {row['supersedes_seq']}")
    return "; ".join(words)


def _name(text: str) -> str:
    """A name on one line that is no markup and no link."""
    return re.sub(r"([\\`*_\[\]<>#|!~])", r"\\\1", printable(text))


def _quoted(text: str, shown: Callable[[str], str]) -> Iterator[str]:
    for line in text.splitlines() or [""]:
        yield f"> {shown(line.expandtabs(4))}".rstrip()


def _fenced(text: str, shown: Callable[[str], str]) -> Iterator[str]:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}json"
    yield from (shown(line) for line in text.splitlines())
    yield fence


def _without_controls(text: str) -> str:
    """For a file: what would steer the terminal of whoever prints it is spelled out, all else is kept."""
    return _CONTROL.sub(lambda found: f"<U+{ord(found[0]):04X}>", text)
