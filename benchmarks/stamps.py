"""Moments at a simulated core, by `perf_counter`: when an event left it, when a command came, when its answer left.

With a server in another process they are taken at the socket, so that neither the sandbox nor its WebSocket counts as
the server's time. A frame that waits for another one counts from the first: never in the server's favour.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import trio

from simplexmcp.sandbox.core import SimulatedCore
from simplexmcp.sandbox.state import CoreState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simplexmcp.sandbox.network import Network

__all__ = ["StampedCore", "at_the_socket", "texts"]

Wire = dict[str, Any]


@dataclass
class _Event:
    texts: list[str]
    left: float = 0.0


@dataclass
class _Command:
    text: str
    came: float
    left: float = 0.0
    """When its answer left."""


class StampedCore(SimulatedCore):
    """The agent's core."""

    def __init__(self, network: Network) -> None:
        super().__init__(network, CoreState("agent"))
        self.socket = False
        """Whether events and answers leave by a socket, and not when they are made."""
        self._came = 0.0
        self._leaving: list[_Event | _Command] = []
        self._events: list[_Event] = []
        self._commands: list[_Command] = []
        self.react(self._emitted)

    def command(self, text: str) -> Wire:
        """The response."""
        command = _Command(text, self._came if self.socket else time.perf_counter())
        self._commands.append(command)
        try:
            return super().command(text)
        finally:
            self._will_leave(command)

    def received(self) -> None:
        """Bytes came by the socket."""
        self._came = time.perf_counter()

    def sending(self) -> None:
        """Bytes leave by the socket."""
        now = time.perf_counter()
        for each in self._leaving:
            each.left = now
        self._leaving.clear()

    def _emitted(self, event: Wire) -> None:
        stamped = _Event(texts(event))
        self._events.append(stamped)
        self._will_leave(stamped)

    def _will_leave(self, what: _Event | _Command) -> None:
        self._leaving.append(what)
        if not self.socket:
            self.sending()

    def told(self, text: str) -> float:
        """When the event of the last message with this text left."""
        return next(event.left for event in reversed(self._events) if text in event.texts)

    def asked(self, begin: str, since: float) -> float:
        """When the first command after `since` that begins so came."""
        return next(each.came for each in self._commands if each.came > since and each.text.startswith(begin))

    def busy(self, since: float, until: float) -> float:
        """Seconds between two moments in which the core worked on commands that it answered meanwhile."""
        busy, free = 0.0, since
        for each in self._commands:
            if each.came >= since and 0.0 < each.left <= until:
                busy += max(0.0, each.left - max(each.came, free))
                free = max(free, each.left)
        return busy


@contextmanager
def at_the_socket(core: StampedCore, port: int) -> Iterator[None]:
    """Take the moments of `core` at the sockets that were accepted on `port`."""
    receive, send = trio.SocketStream.receive_some, trio.SocketStream.send_all

    async def receive_some(self: trio.SocketStream, max_bytes: int | None = None) -> bytes | bytearray:
        data = await receive(self, max_bytes)
        if self.socket.getsockname()[1] == port:
            core.received()
        return data

    async def send_all(self: trio.SocketStream, data: bytes | bytearray | memoryview) -> None:
        if self.socket.getsockname()[1] == port:
            core.sending()
        await send(self, data)

    core.socket = True
    with (
        patch.object(trio.SocketStream, "receive_some", receive_some),
        patch.object(trio.SocketStream, "send_all", send_all),
    ):
        yield


def texts(event: Wire) -> list[str]:
    """The texts of the messages that an event brings."""
    if event["type"] != "newChatItems":
        return []
    return [str(entry["chatItem"]["meta"]["itemText"]) for entry in event["chatItems"]]
