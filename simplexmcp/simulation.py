"""The command `simplexmcp sandbox`: the simulated network as a process of its own, until Ctrl-C."""

from __future__ import annotations

import signal
from functools import partial
from typing import TYPE_CHECKING

import trio

from simplexmcp.errors import UserError
from simplexmcp.phone.server import serve_phone
from simplexmcp.sandbox.link import open_sandbox
from simplexmcp.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from simplexmcp.sandbox.network import Network

__all__ = ["run", "simulate"]

_PROFILE = "nobody"  # the core that the process itself holds; nobody uses it


def run(port: int, state: Path | None, phone_port: int | None = None) -> int:
    """`simplexmcp sandbox`: the exit code. Raises UserError: the port is in use, `state` is no such file."""
    try:
        trio.run(_until_signal, port, state, phone_port)
    except* OSError as group:
        reason = _first(group).strerror or "refused"
        raise UserError(f"Port {port} on 127.0.0.1: {reason}. Give another with --port.") from group
    return 0


async def simulate(port: int, state: Path | None, out: Callable[[str], None], phone_port: int | None = None) -> None:
    """Serve the network and its phone until cancelled; `out` gets the lines for the terminal. Port 0 takes a free
    one, `phone_port` None the usual one or a free one."""
    async with open_sandbox(state, _PROFILE, port=port) as link, trio.open_nursery() as nursery:
        phone = await nursery.start(partial(serve_phone, link.network, held=_PROFILE, port=phone_port))
        out("This is a simulation: no phones, no internet and no real people.")
        out(phone.line())
        out(f"Serving ws://127.0.0.1:{link.port}/PROFILE; a new PROFILE is a core without a user.")
        for line in _directory(link.network):
            out(line)
        out("Ctrl-C ends it." if state else "Ctrl-C ends it, and all that is in it.")
        await trio.sleep_forever()


def _directory(network: Network) -> list[str]:
    """Who and what is in the network, with the links to reach them."""
    entries = [
        f"  {entry['kind']} {entry['name'] or label}, {entry['short']}" for label, entry in network.directory().items()
    ]
    return ["In it:", *(printable(entry) for entry in entries)] if entries else []


async def _until_signal(port: int, state: Path | None, phone_port: int | None) -> None:
    async with trio.open_nursery() as nursery:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            nursery.start_soon(simulate, port, state, _print, phone_port)
            async for _ in signals:
                nursery.cancel_scope.cancel()
                return


def _print(line: str) -> None:
    print(line, flush=True)


def _first(group: BaseExceptionGroup[OSError]) -> OSError:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, OSError)
    return error
