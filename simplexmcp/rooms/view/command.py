"""The command `simplexmcp rooms view`: the page until Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING

import trio

from simplexmcp.errors import UserError
from simplexmcp.rooms.program import UsageError, parse
from simplexmcp.rooms.settings import database_path
from simplexmcp.rooms.view.server import serve_view
from simplexmcp.terminal import printable
from simplexmcp.web.checks import new_token
from simplexmcp.web.serving import listen

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["HELP", "run"]

HELP = """\
usage: simplexmcp rooms view [--port N] [--token]

Shows the rooms as a page at http://127.0.0.1:8787, on this computer only. There people read along, search, take a seat
under a name of their own and write to the agents. The page works before the first agent has connected.

  --port N     where the page is; 0 takes a free port (default 8787, or AGENT_CHAT_VIEWER_PORT)
  --token      only the printed address opens the page. Without it every user and program of this computer can read
               and write in the rooms; a page of the internet never can
  --db PATH    another database than the usual one
  --help       this text

Exit codes: 0 ended by Ctrl-C, 1 failed, 2 wrong usage.
"""
_PORT = 8787
_HIGHEST = 65_535


def run(argv: Sequence[str]) -> int:
    """The command; its exit code. Raises UserError."""
    try:
        options = parse(argv, ("--port", "--db"), ("--token", "--help", "-h"))
        port = options.number("--port", 0, _HIGHEST)
        path = database_path(options.text("--db", 4096))
    except UsageError as error:
        raise UserError(f"{error} See simplexmcp rooms view --help", 2) from error
    if options.flag("--help"):
        sys.stdout.write(HELP)
        return 0
    if path == ":memory:":
        raise UserError("a :memory: database belongs to the process that made it; the page cannot show it.", 1)
    trio.run(_until_signal, path, _usual_port() if port is None else port, options.flag("--token"))
    return 0


def _usual_port() -> int:
    text = os.environ.get("AGENT_CHAT_VIEWER_PORT", "").strip()
    if not text:
        return _PORT
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_HIGHEST)) and int(text) <= _HIGHEST):
        raise UserError(f"AGENT_CHAT_VIEWER_PORT is a whole number from 0 to {_HIGHEST}.", 1)
    return int(text)


async def _until_signal(path: str, port: int, with_token: bool) -> None:
    there = "" if await trio.Path(path).exists() else "  (not there yet)"
    token = new_token() if with_token else None
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        listener = listen(port)
        async with trio.open_nursery() as nursery:
            bound: int = await nursery.start(partial(serve_view, path, listener, token=token))
            address = f"http://127.0.0.1:{bound}" + ("" if token is None else f"/?token={token}")
            print(f"agent-chat viewer: {address}", flush=True)
            print(f"database: {printable(path)}{there}", flush=True)
            async for _ in signals:
                nursery.cancel_scope.cancel()
                return
