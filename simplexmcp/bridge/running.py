"""Where the server of an agent is, and the command `simplexmcp bridge` itself."""

from __future__ import annotations

import sys
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

import trio

from simplexmcp.bridge.proxy import READ_LIMIT, Place, Proxy
from simplexmcp.bridge.stdio import open_stdio, read_lines, write_lines
from simplexmcp.errors import UserError
from simplexmcp.folder import read_server, read_token, running_pid
from simplexmcp.register import command_line
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["find_server", "run"]

_WAITING = 64  # lines for the client that are not written yet


def run(name: str, data: Path, *, given: bool) -> int:
    """`simplexmcp bridge`: the exit code, when the client has closed stdin. `given`: whether `--data` gave `data`."""
    trio.run(_bridge, name, data, given)
    return 0


def find_server(name: str, data: Path, *, given: bool) -> Place:
    """Where the server of agent `name` listens now. Raises UserError when none runs: a port that nobody holds any more
    may be another program's, which must not see the token."""
    start = command_line("serve", name, data if given else None)
    info = read_server(name, data)
    pid = running_pid(data)
    if info is None or pid is None:
        raise UserError(f"Agent {printable(name)} is not running. Start it with: {printable(start)}")
    if pid and pid != info.pid:
        raise UserError(f"Agent {printable(name)} is starting. Try again in a few seconds.")
    return Place(info.port, read_token(data))


async def _bridge(name: str, data: Path, given: bool) -> None:
    def say(line: str) -> None:
        print(f"simplexmcp bridge: {line}", file=sys.stderr, flush=True)

    try:
        async with open_stdio() as (stdin, stdout), trio.open_nursery() as nursery:
            lines, written = trio.open_memory_channel[bytes](_WAITING)
            nursery.start_soon(write_lines, stdout, written)
            async with lines, aclosing(read_lines(stdin, READ_LIMIT)) as given_lines:
                await Proxy(partial(find_server, name, data, given=given), lines, say).run(given_lines)
    except* trio.BrokenResourceError:
        say("The client reads no more.")
