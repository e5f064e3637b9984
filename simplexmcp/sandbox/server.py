"""The simulated network over WebSocket, in the protocol of the command line client: `ws://127.0.0.1:PORT/PROFILE`.

Each profile is a core; an unknown name is a core without a user that is not started. Each event goes to exactly one
client, the first that is connected; without one it waits. One command at a time for each connection.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, final
from urllib.parse import unquote

import trio
from trio_websocket import ConnectionClosed, WebSocketRequest, serve_websocket

from simplexmcp.sandbox.driver import drive
from simplexmcp.sandbox.errors import PARSE_ERROR
from simplexmcp.sandbox.grammar import parses

if TYPE_CHECKING:
    from simplexmcp.sandbox.core import SimulatedCore
    from simplexmcp.sandbox.network import Network

__all__ = ["serve_clients", "serve_network"]

JsonObject = dict[str, Any]

_INVALID = {"type": "error", "errorType": {"type": "commandError", "message": "invalid request"}}
_LARGEST = 1 << 30
"""Bytes of a message; the real client has no limit that was seen."""


async def serve_network(
    network: Network, port: int, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED
) -> None:
    """Drive the network and serve it until cancelled; `task_status` gets the port (that of `port` 0 too)."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(drive, network)
        bound: int = await nursery.start(serve_clients, network, port)
        task_status.started(bound)


async def serve_clients(
    network: Network,
    port: int,
    *,
    held: str | None = None,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve a network that somebody else drives; `held` is a profile that the process itself uses: it is not served,
    since a client would take its events away and could act in its name."""
    hubs: dict[str, _Hub] = {}

    async def handle(request: WebSocketRequest) -> None:
        name = unquote(request.path.partition("?")[0].strip("/")) or "default"
        if name == held:
            await request.reject(403, body=b"This profile belongs to the process that serves the network.\n")
            return
        if name not in hubs:
            hubs[name] = _Hub(network.core(name))
            hubs[name].core.cli = True
        hub = hubs[name]
        await _Client(network, hub, await request.accept()).run()

    async with trio.open_nursery() as nursery:
        server = await nursery.start(
            lambda task_status: serve_websocket(
                handle, "127.0.0.1", port, None, max_message_size=_LARGEST, task_status=task_status
            )
        )
        task_status.started(server.port)


@final
class _Hub:
    """The clients of one core in the order of their arrival."""

    def __init__(self, core: SimulatedCore) -> None:
        self.core = core
        self._clients: list[_Client] = []
        self._listener: _Client | None = None

    def add(self, client: _Client) -> None:
        """A client came; the first gets the events."""
        self._clients.append(client)
        if self._listener is None:
            self._listen()

    def remove(self, client: _Client) -> None:
        """A client went; the next gets the events."""
        self._clients.remove(client)
        if client is self._listener:
            self._listen()

    def _listen(self) -> None:
        self._listener = self._clients[0] if self._clients else None
        self.core.subscribe(self._listener.push_event if self._listener else None)


@final
class _Client:
    """One connection: a reader, a worker for its commands, a writer for all that goes out."""

    def __init__(self, network: Network, hub: _Hub, ws: Any) -> None:
        self._network, self._hub, self._ws = network, hub, ws
        self._out, self._to_write = trio.open_memory_channel[JsonObject](math.inf)
        self._work, self._to_do = trio.open_memory_channel[tuple[str, str]](1)

    async def run(self) -> None:
        """Serve until the client goes or a fault takes the connection away."""
        self._hub.add(self)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                nursery.start_soon(self._do_commands, nursery.cancel_scope)
                await self._read()
                nursery.cancel_scope.cancel()
        finally:
            self._hub.remove(self)
        await self._ws.aclose(code=1011)

    def push_event(self, event: JsonObject) -> None:
        """Queue an event."""
        self._out.send_nowait({"resp": event})

    async def _write(self) -> None:
        async for frame in self._to_write:
            try:
                await self._ws.send_message(json.dumps(frame, ensure_ascii=False, separators=(",", ":")))
            except ConnectionClosed:
                return

    async def _read(self) -> None:
        while True:
            try:
                message = await self._ws.get_message()
            except ConnectionClosed:
                return
            request = _request(message)
            if request is None:
                self._out.send_nowait({"resp": {"type": "chatCmdError", "chatError": _INVALID}})
            elif not parses(request[1]):
                answer = {"type": "chatCmdError", "chatError": PARSE_ERROR}
                self._out.send_nowait({"corrId": request[0], "resp": answer})
            else:
                await self._work.send(request)

    async def _do_commands(self, scope: trio.CancelScope) -> None:
        faults = self._network.faults
        core = self._hub.core
        async for corr_id, command in self._to_do:
            done = faults.dropped(core.name, command)
            if done is not None:
                if done:
                    core.command(command)
                scope.cancel()
                return
            response = core.command(command)
            if faults.response_delay:
                await trio.sleep(faults.response_delay)
            self._out.send_nowait({"corrId": corr_id, "resp": response})
            await trio.lowlevel.checkpoint()


def _request(message: str | bytes) -> tuple[str, str] | None:
    """corrId and command of a frame, or None when it is no request."""
    try:
        value = json.loads(message)
        if isinstance(value, dict) and isinstance(value.get("corrId"), str) and isinstance(value.get("cmd"), str):
            value["cmd"].encode()
            value["corrId"].encode()
            return value["corrId"], value["cmd"]
    except (ValueError, RecursionError):
        return None
    return None
