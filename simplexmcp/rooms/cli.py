"""`simplexmcp rooms …`: the commands of the rooms. Each is imported when it is chosen, so that all start fast."""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from simplexmcp.errors import SimplexMcpError, UserError
from simplexmcp.rooms.program import emit_error
from simplexmcp.terminal import nearest, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simplexmcp.rooms.runtime import Binding

__all__ = ["HELP", "run"]

HELP = """\
usage: simplexmcp rooms COMMAND [options]

Chat rooms for agents and people on one machine, in one SQLite file.

for agents:
  mcp                 the MCP server on stdin and stdout; an agent's client starts it
  watch --agent ID    waits in the background until there is news
  check --agent ID    is there news? answers at once
  hook CLIENT         tells an agent of unread messages in its client's own way

for people:
  view                the rooms as a page in the browser
  register CLIENT     adds the server to an agent's client
  install CLIENT      adds the server and the hooks
  doctor              what is wrong, and how to fix it
  export ROOM         writes a room's messages out
  retention ROOM      how long a room keeps its messages

The database is the file that SIMPLEXMCP_ROOMS_DB (or AGENT_CHAT_DB) names, else ~/.agent-chat-mcp/chat.db.
simplexmcp rooms COMMAND --help shows the options of a command.
"""
_MCP_HELP = """\
usage: simplexmcp rooms mcp

Serves one agent over stdin and stdout (MCP), until stdin ends. It takes no options.

environment:
  SIMPLEXMCP_ROOMS_DB           the database (before AGENT_CHAT_DB)
  AGENT_CHAT_MAX_WAIT_SECONDS   the longest wait_seconds of catch_up, 1 to 120 (default 25)
  SIMPLEXMCP_ROOMS_TOOLS        "reference" leaves out the tools that the reference program has not (enter)

Exit codes: 0 the client is done, 1 failed, 2 wrong usage.
"""
# The module of each command; its `run` takes the arguments after the command and gives the exit code.
_MODULES = {
    **{name: name for name in ("watch", "check", "hook", "register", "install", "doctor", "export", "retention")},
    "view": "view.command",
}


def run(argv: Sequence[str]) -> int:
    """Runs one command; its exit code. What goes wrong is one line on stderr."""
    try:
        return _run(list(argv))
    except SimplexMcpError as error:
        emit_error(f"simplexmcp rooms: {printable(str(error))}")
        return error.code if isinstance(error, UserError) else 1


def _run(argv: list[str]) -> int:
    if not argv:
        raise UserError("give a command. See simplexmcp rooms --help", 2)
    command, *rest = argv
    if command in ("-h", "--help", "help"):
        sys.stdout.write(HELP)
        return 0
    if command == "mcp":
        return _mcp(rest)
    if command not in _MODULES:
        near = nearest(command, ("mcp", *_MODULES))
        raise UserError(f'there is no command "{command}".{near} See simplexmcp rooms --help', 2)
    return int(import_module(f"simplexmcp.rooms.{_MODULES[command]}").run(rest))


def _mcp(rest: list[str]) -> int:
    if rest in (["-h"], ["--help"]):
        sys.stdout.write(_MCP_HELP)
        return 0
    if rest:
        raise UserError(f'"{rest[0]}": mcp takes no options. See simplexmcp rooms mcp --help', 2)
    from simplexmcp.rooms.settings import read_settings

    settings = read_settings()
    from simplexmcp.rooms.store.database import open_database

    database = open_database(settings.path)
    try:
        from simplexmcp.rooms.protocol import Session
        from simplexmcp.rooms.registry import tools
        from simplexmcp.rooms.runtime import Runtime
        from simplexmcp.rooms.stdio import serve

        runtime = Runtime(database, settings)
        runtime.on_binding = partial(_note_seat, settings.path)
        session = Session(runtime, tools(settings))
        emit_error(f"simplexmcp rooms: ready, database {printable(settings.path)}")
        try:
            return serve(session, database)
        finally:
            if runtime.binding is not None:
                _note_seat(settings.path, None)
    finally:
        database.close()


def _note_seat(path: str, binding: Binding | None) -> None:
    from simplexmcp.rooms.seats import note_seat  # costs start time that only a bound server needs

    note_seat(path, binding)
