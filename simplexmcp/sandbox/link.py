"""The simulated network as a link inside the process, optionally served to others over WebSocket."""

from __future__ import annotations

import math
import secrets
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, final

import trio

from simplexmcp.core.link import LINK_DOWN, LINK_UP, Event
from simplexmcp.errors import LinkLost, core_error
from simplexmcp.sandbox import persistence
from simplexmcp.sandbox.driver import drive, trio_clock
from simplexmcp.sandbox.network import Network
from simplexmcp.sandbox.server import serve_clients

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.faults import Faults

__all__ = ["SandboxLink", "open_sandbox"]

_SAVE_AFTER = 0.5
"""Seconds after a change until the state is written."""
_DOWN_FOR = 0.2
"""Seconds that a lost link stays down."""


@final
class SandboxLink:
    """A link to one profile of a simulated network (`core.link.Link`). `network` is the network, `port` where it is
    served, if it is."""

    def __init__(self, network: Network, core: SimulatedCore, nursery: trio.Nursery) -> None:
        self.network = network
        self.core = core
        self.port: int | None = None
        self._nursery = nursery
        self._down_since: float | None = None
        self._push, self._events = trio.open_memory_channel[Event](math.inf)
        core.subscribe(self._push.send_nowait)

    async def send(self, command: str) -> Event:
        """The response to one command; CoreError when refused, LinkLost when a fault takes the link away."""
        await trio.lowlevel.checkpoint()
        faults = self.network.faults
        if self._down_since is not None:
            raise LinkLost("link/down", "the link to the SimpleX core is down")
        done = faults.dropped(self.core.name, command)
        if done is not None:
            if done:
                self.core.command(command)
            self._lose()
            raise LinkLost("link/lost", "the link to the SimpleX core was lost")
        response = self.core.command(command)
        if faults.response_delay:
            await trio.sleep(faults.response_delay)
        if response["type"] == "chatCmdError":
            raise core_error(response["chatError"])
        return response

    @property
    def events(self) -> trio.MemoryReceiveChannel[Event]:
        """Events in order, with linkDown and linkUp at their place."""
        return self._events

    @property
    def down_since(self) -> float | None:
        """Seconds since the epoch since when the link is down; None while it is up."""
        return self._down_since

    def _lose(self) -> None:
        self._down_since = self.network.clock()
        self.core.subscribe(None)
        self._push.send_nowait({"type": LINK_DOWN, "reason": "the connection was dropped"})
        self._nursery.start_soon(self._come_back)

    async def _come_back(self) -> None:
        await trio.sleep(_DOWN_FOR)
        self._down_since = None
        self._push.send_nowait({"type": LINK_UP})
        self.core.subscribe(self._push.send_nowait)


@asynccontextmanager
async def open_sandbox(
    state: Path | None,
    profile: str,
    *,
    port: int | None = None,
    population: bool = True,
    faults: Faults | None = None,
) -> AsyncGenerator[SandboxLink]:
    """A link to `profile`. The network lives in memory, or in the file `state`, which is made when missing; with
    `port` (0: any free one) it is also served on `ws://127.0.0.1:PORT/PROFILE`. UserError when the file
    is bad or cannot be written."""
    clock = trio_clock()
    if state is not None and await trio.to_thread.run_sync(state.exists):
        network = persistence.load(state, clock, faults)
    else:
        network = Network(clock, faults=faults, population=population, seed=secrets.token_hex(8))
        if state is not None:
            network.files.keep_in(persistence.files_of(state))
            persistence.save(network, state)
    try:
        async with trio.open_nursery() as nursery:
            link = SandboxLink(network, network.core(profile), nursery)
            nursery.start_soon(drive, network)
            if port is not None:
                link.port = await nursery.start(partial(serve_clients, network, port, held=profile))
            if state is not None:
                nursery.start_soon(_keep, network, state)
            yield link
            nursery.cancel_scope.cancel()
    finally:
        # Only now: a write in a thread, which cannot be cancelled, has ended.
        if state is not None:
            persistence.save(network, state)


async def _keep(network: Network, state: Path) -> None:
    """Write the state a moment after each change."""
    touched = trio.Event()

    def touch() -> None:
        touched.set()

    network.touched = touch
    while True:
        await touched.wait()
        await trio.sleep(_SAVE_AFTER)
        touched = trio.Event()
        await trio.to_thread.run_sync(persistence.write, state, persistence.text_of(network))
