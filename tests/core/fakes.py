"""Scripted cores: a link that answers from a script, and a WebSocket that says what the test tells it to."""

from __future__ import annotations

import gzip
import json
import math
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio
import trio.testing
from trio_websocket import ConnectionClosed, WebSocketConnection, WebSocketRequest, wrap_server_stream

from simplexmcp.core.dial import NotOpenedError
from simplexmcp.errors import core_error

if TYPE_CHECKING:
    from simplexmcp.core.address import WebSocketAddress

DATA = Path(__file__).parent.parent / "data" / "core"


def examples() -> dict[str, dict[str, Any]]:
    """Commands with their answers as a real core gave them."""
    with gzip.open(DATA / "examples.json.gz", "rt", encoding="utf-8") as file:
        return json.load(file)


class ScriptedLink:
    """A link that answers each command with the next entry of its script."""

    def __init__(self, *script: dict[str, Any]) -> None:
        self.script = deque(script)
        self.commands: list[str] = []
        self.down_since = None
        self._send, self.events = trio.open_memory_channel[dict[str, Any]](math.inf)

    async def send(self, command: str) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        self.commands.append(command)
        entry = self.script.popleft()
        if "error" in entry:
            raise core_error(entry["error"])
        return entry["resp"]


class FakeCore:
    """A core behind memory streams. `dial` makes a connection to it; the test reads `requests` and speaks as the
    core. While `refusing`, nothing listens."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.nursery = nursery
        self.refusing = False
        self.dials: list[float] = []
        self.handshakes: list[WebSocketRequest] = []
        self.connection: WebSocketConnection | None = None
        self.stream: trio.testing.MemorySendStream | Any = None
        self.opened = 0
        self._requests, self.requests = trio.open_memory_channel[dict[str, Any]](math.inf)

    async def dial(self, address: WebSocketAddress) -> trio.abc.Stream:
        self.dials.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        if self.refusing:
            raise NotOpenedError("nothing listens there")
        ours, theirs = trio.testing.memory_stream_pair()
        self.nursery.start_soon(self._serve, theirs)
        return ours

    async def _serve(self, stream: Any) -> None:
        async with trio.open_nursery() as nursery:
            request = await wrap_server_stream(nursery, stream, max_message_size=2**30)
            self.handshakes.append(request)
            connection = await request.accept()
            self.connection, self.stream = connection, stream
            self.opened += 1
            with suppress(ConnectionClosed):
                while True:
                    self._requests.send_nowait(json.loads(await connection.get_message()))

    async def request(self) -> dict[str, Any]:
        """The next request that came."""
        return await self.requests.receive()

    async def say(self, value: Any) -> None:
        """Sends a frame: a text as it is, anything else as JSON."""
        await self.connection.send_message(value if isinstance(value, str | bytes) else json.dumps(value))

    async def answer(self, request: dict[str, Any], **response: Any) -> None:
        await self.say({"corrId": request["corrId"], "resp": {"type": "cmdOk", **response}})

    def break_connection(self) -> None:
        """As when the core's process dies: the stream ends without a word."""
        self.stream.send_stream.close()
        self.stream.receive_stream.close()
