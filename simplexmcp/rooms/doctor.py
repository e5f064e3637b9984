"""`simplexmcp rooms doctor`: what is wrong with the rooms on this machine, and what to do about it. Only reads."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from simplexmcp.errors import SimplexMcpError, UserError
from simplexmcp.rooms.clients import CLIENTS, hooks_edit, is_hooked, registered, server_command
from simplexmcp.rooms.jsontext import dumps
from simplexmcp.rooms.lock import folder, holder
from simplexmcp.rooms.program import UsageError, parse
from simplexmcp.rooms.settings import database_path
from simplexmcp.rooms.store.database import open_database
from simplexmcp.rooms.store.schema import VERSION
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from simplexmcp.rooms.clients import Client

__all__ = ["HELP", "run"]

HELP = """\
Usage: simplexmcp rooms doctor [--json]

Looks at the database, its permissions, the watchers' locks and the clients' settings. One line each; what is wrong
comes with what to do.

  --json    one JSON object instead: {"ok", "checks": [{"check", "ok", "text", "fix"}]}
  --help    this text

Exit codes: 0 all is well, 1 something is wrong, 2 wrong usage.
"""


class _Finding(NamedTuple):
    """`fix` is what to do; with one, something is wrong."""

    check: str
    text: str
    fix: str | None = None


def run(argv: Sequence[str]) -> int:
    """The program; its exit code. Raises UserError."""
    try:
        options = parse(argv, (), ("--json", "--help", "-h"))
    except UsageError as error:
        raise UserError(f"{error} See --help.", 2) from None
    if options.flag("--help"):
        sys.stdout.write(HELP)
        return 0
    found = list(_findings(database_path()))
    healthy = all(finding.fix is None for finding in found)
    if options.flag("--json"):
        print(dumps({"ok": healthy, "checks": [_as_json(finding) for finding in found]}))
    else:
        for finding in found:
            print(_as_line(finding))
    return 0 if healthy else 1


def _findings(path: str) -> Iterator[_Finding]:
    yield from _database(path)
    yield from _permissions(path)
    yield from _watchers()
    for client in CLIENTS:
        yield from _client(client)


def _database(path: str) -> Iterator[_Finding]:
    if path == ":memory:":
        yield _Finding(
            "database", "The environment names a database in memory.", "Name a file; agents share nothing else."
        )
        return
    if not Path(path).exists():
        yield _Finding("database", f"{path} is not there yet; the first server makes it.")
        return
    try:
        with closing(open_database(path, create=False, read_only=True)) as database:
            version = int(database.value("PRAGMA user_version"))
            mode = str(database.value("PRAGMA journal_mode"))
            rooms, messages = (database.value(f"SELECT count(*) FROM {table}") for table in ("rooms", "messages"))
    except SimplexMcpError as error:
        what, _, advice = str(error).rpartition(". ")  # its last sentence says what to do
        yield _Finding("database", f"{what}." if what else advice, advice if what else "Restore a copy of the file.")
        return
    yield _Finding("database", f"{path}: {rooms} rooms, {messages} messages.")
    if version < VERSION:
        yield _Finding("schema", f"Schema {version}; the next server brings it to {VERSION}.")
    else:
        yield _Finding("schema", f"Schema {version}, as it should be.")
    if mode != "wal":
        yield _Finding(
            "journal", f"The journal mode is {mode}.", "Start a server once: it sets wal, so that readers never wait."
        )


def _permissions(path: str) -> Iterator[_Finding]:
    files = [file for suffix in ("", "-wal", "-shm") if (file := Path(path + suffix)).exists()]
    if not files:
        return
    wrong = False
    for file in files:
        found = file.stat()
        if found.st_uid != os.getuid():
            wrong = True
            yield _Finding(
                "permissions", f"{file} belongs to another user.", f"sudo chown {os.getuid()} {shlex.quote(str(file))}"
            )
        elif stat.S_IMODE(found.st_mode) & 0o077:
            wrong = True
            yield _Finding("permissions", f"Others may use {file}.", f"chmod 600 {shlex.quote(str(file))}")
    if not wrong:
        yield _Finding("permissions", "Only this user can read the database.")


def _watchers() -> Iterator[_Finding]:
    place = Path(folder())
    try:
        if place.exists() and (place.is_symlink() or place.stat().st_uid != os.getuid()):
            yield _Finding("watchers", f"{place} is not this user's own folder.", f"rm -r {shlex.quote(str(place))}")
            return
        pids = [holder(str(file)) for file in sorted(place.glob("*.lock"))]
    except OSError as error:
        yield _Finding("watchers", f"{place} cannot be read: {error.strerror}.", f"chmod 700 {shlex.quote(str(place))}")
        return
    running = [str(pid) for pid in pids if pid is not None]
    left = len(pids) - len(running)
    text = f"{len(running)} running" + (f" (processes {', '.join(running)})" if running else "")
    yield _Finding("watchers", text + (f", {left} left over; the next ones take their places." if left else "."))


def _client(client: Client) -> Iterator[_Finding]:
    check = f"client {client.name}"
    there = client.program and shutil.which(client.program) is not None
    try:
        found = registered(client)
        hooked = client.hooks is not None and is_hooked(client)
        partly = not hooked and _has_any_hook(client)
    except UserError as error:
        yield _Finding(check, str(error), "Repair the file.")
        return
    if found is None and not partly and not hooked:
        if there:
            yield _Finding(
                check, f"{client.title} does not know the rooms: simplexmcp rooms install {client.name} adds them."
            )
        return
    if found is None:
        yield _Finding(
            check, f"{client.title} has our hooks, but not the server.", f"simplexmcp rooms install {client.name}"
        )
        return
    if found != server_command() and not _is_this_program(found):
        runs = f"{client.title}'s server is another program: {shlex.join(found)}."
        yield _Finding(check, runs, f"simplexmcp rooms install {client.name} --force, if it should be this one")
        return
    if partly:
        text = f"{client.title}'s hooks are of another installation, or not all there."
        yield _Finding(check, text, f"simplexmcp rooms install {client.name}")
        return
    yield _Finding(check, f"{client.title} has the server" + (" and the hooks." if hooked else "."))


def _is_this_program(command: list[str]) -> bool:
    """Whether a command starts the rooms server of some installation, with `uvx` for example."""
    return command[-2:] == ["rooms", "mcp"] and any("simplexmcp" in word for word in command[:-2])


def _has_any_hook(client: Client) -> bool:
    edit = hooks_edit(client, wanted=False)
    return edit is not None and edit.before != edit.after


def _as_json(finding: _Finding) -> dict[str, Any]:
    return {"check": finding.check, "ok": finding.fix is None, "text": finding.text, "fix": finding.fix}


def _as_line(finding: _Finding) -> str:
    sign = "ok   " if finding.fix is None else "WRONG"
    fix = "" if finding.fix is None else f" To do: {printable(finding.fix)}"
    return f"{sign} {finding.check}: {printable(finding.text)}{fix}"
