"""A listener with fake tools, and a client of raw sockets that sends exactly what a test says."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import h11
import trio
import trio.testing

from simplexmcp.listener import Closing, Hints, Limits, ToolInfo, ToolResult, serve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from simplexmcp.listener import Call

TOKEN = "correct-horse-battery-staple"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}
NEVER = Limits(first_byte=3600, pulse=3600)


@dataclass
class FakeTools:
    """Tools whose behaviour each test sets; what happens to them is noted."""

    behaviours: dict[str, Any] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    arguments: list[dict[str, Any]] = field(default_factory=list)
    _changed: trio.Event = field(default_factory=trio.Event)

    def describe(self) -> list[ToolInfo]:
        return [
            ToolInfo(
                "list", "List", "Lists.", SCHEMA, Hints(read_only=True), {"anthropic/requiresUserInteraction": True}
            ),
            ToolInfo("send", "Send", "Sends.", SCHEMA, Hints(destructive=True)),
        ]

    async def call(self, name: str, arguments: dict[str, Any], call: Call) -> ToolResult:
        self._note(self.started, name)
        self.arguments.append(arguments)
        try:
            if name in self.behaviours:
                return await self.behaviours[name](arguments, call)
            return ToolResult({"ok": True, **arguments}, settle=lambda: self._note(self.settled, name))
        except trio.Cancelled:
            self._note(self.cancelled, name)
            raise

    def settle(self, name: str) -> Callable[[], None]:
        return lambda: self._note(self.settled, name)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Returns when the condition holds; fails after 5 s of the test's clock."""
        with trio.fail_after(20):
            while not condition():
                self._changed = trio.Event()
                await self._changed.wait()

    def _note(self, notes: list[str], name: str) -> None:
        notes.append(name)
        self._changed.set()


async def forever(arguments: dict[str, Any], call: Call) -> ToolResult:
    """A tool that waits until it is cancelled."""
    await trio.sleep_forever()
    raise AssertionError


@dataclass
class Listening:
    """A running listener."""

    port: int
    tools: FakeTools
    closing: Closing
    ended: trio.Event

    async def connect(self) -> Client:
        return Client(await trio.open_tcp_stream("127.0.0.1", self.port), self.port)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        client = await self.connect()
        try:
            yield client
        finally:
            await trio.aclose_forcefully(client.stream)


@asynccontextmanager
async def listening(
    tools: FakeTools | None = None, *, ready: Callable[[], bool] = lambda: True, limits: Limits | None = None
) -> AsyncIterator[Listening]:
    """A listener on a free port, ended with the context."""
    tools = tools or FakeTools()
    closing = Closing()
    ended = trio.Event()

    async def run(*, task_status: trio.TaskStatus[int]) -> None:
        await serve(tools, port=0, token=TOKEN, ready=ready, closing=closing, limits=limits, task_status=task_status)
        ended.set()

    async with trio.open_nursery() as nursery:
        port = await nursery.start(run)
        try:
            yield Listening(port, tools, closing, ended)
        finally:
            nursery.cancel_scope.cancel()


@dataclass
class Reply:
    """A whole response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        return [
            json.loads(line.removeprefix(b"data: ")) for line in self.body.split(b"\n") if line.startswith(b"data: ")
        ]

    @property
    def message(self) -> Any:
        """The JSON-RPC response: the body, or the last event."""
        return self.events[-1] if "text/event-stream" in self.headers.get("content-type", "") else self.json


class Client:
    """One connection, by hand."""

    def __init__(self, stream: trio.SocketStream, port: int) -> None:
        self.stream = stream
        self.port = port
        self._h11 = h11.Connection(h11.CLIENT)

    def head(self, **changes: str | None) -> list[tuple[str, str]]:
        """The headers of a good request; a keyword changes one (`_` for `-`), None leaves it out."""
        headers: dict[str, str | None] = {
            "host": f"127.0.0.1:{self.port}",
            "authorization": f"Bearer {TOKEN}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2025-11-25",
        }
        headers.update({name.replace("_", "-"): value for name, value in changes.items()})
        return [(name, value) for name, value in headers.items() if value is not None]

    async def send(
        self,
        body: bytes = b"",
        *,
        method: str = "POST",
        target: str = "/mcp",
        extra: Iterable[tuple[str, str]] = (),
        **changes: str | None,
    ) -> None:
        """Sends one request; without a content_length its length is declared."""
        if self._h11.our_state is h11.DONE:
            self._h11.start_next_cycle()
        headers = [*self.head(**changes), *extra]
        if not any(name in ("content-length", "transfer-encoding") for name, _ in headers):
            headers.append(("content-length", str(len(body))))
        data = self._h11.send(h11.Request(method=method, target=target, headers=headers)) or b""
        data += self._h11.send(h11.Data(data=body)) or b""
        data += self._h11.send(h11.EndOfMessage()) or b""
        await self.stream.send_all(data)

    async def ask(self, message: Any, **changes: str | None) -> Reply:
        """Sends a message and reads the whole response."""
        await self.send(message if isinstance(message, bytes) else json.dumps(message).encode(), **changes)
        return await self.reply()

    async def call(
        self, tool: str = "list", arguments: Any = None, *, number: Any = 1, token: Any = None, **changes: str | None
    ) -> None:
        """Sends a tools/call."""
        await self.send(json.dumps(tools_call(tool, arguments, number=number, token=token)).encode(), **changes)

    async def begin(self) -> tuple[int, dict[str, str]]:
        """Status and headers of the response."""
        event = await self._next()
        assert isinstance(event, h11.Response), event
        return event.status_code, {name.decode(): value.decode() for name, value in event.headers}

    async def begin_of(self, method: bytes, *, seconds: float = 5) -> tuple[int, dict[str, str]]:
        """Status and headers of the answer to a request that was sent as raw bytes."""
        self._h11.send(h11.Request(method=method, target="/", headers=[("host", "x"), ("content-length", "0")]))
        with trio.fail_after(seconds):
            return await self.begin()

    async def chunk(self) -> bytes:
        """What comes next of the body; empty at its end."""
        event = await self._next()
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    async def reply(self) -> Reply:
        """The whole response, within 5 s of the test's clock."""
        with trio.fail_after(20):
            status, headers = await self.begin()
            body = b""
            while chunk := await self.chunk():
                body += chunk
            return Reply(status, headers, body)

    async def closed(self) -> bool:
        """Whether the server closes the connection (within 5 s)."""
        with trio.move_on_after(5):
            try:
                while await self.stream.receive_some(65536):
                    continue
            except trio.BrokenResourceError:
                return True
            return True
        return False

    async def _next(self) -> Any:
        while (event := self._h11.next_event()) is h11.NEED_DATA:
            self._h11.receive_data(await self.stream.receive_some(65536))
        return event


def living() -> int:
    """How many tasks there are."""
    return trio.lowlevel.current_statistics().tasks_living


async def until_living(tasks: int) -> None:
    """Returns when no more than `tasks` are left (within 5 s)."""
    with trio.fail_after(20):
        while living() > tasks:
            await trio.testing.wait_all_tasks_blocked()


def rpc(method: str, params: Any = None, *, number: Any = 1) -> dict[str, Any]:
    """A request; with `number=None` a notification."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if number is not None:
        message["id"] = number
    if params is not None:
        message["params"] = params
    return message


def tools_call(tool: str, arguments: Any = None, *, number: Any = 1, token: Any = None) -> dict[str, Any]:
    """A tools/call; with a token it asks for progress."""
    params: dict[str, Any] = {"name": tool, "arguments": {} if arguments is None else arguments}
    if token is not None:
        params["_meta"] = {"progressToken": token}
    return rpc("tools/call", params, number=number)


MODERN = {"mcp_protocol_version": "2026-07-28"}


def modern_call(
    tool: str, arguments: Any = None, *, number: Any = 1, token: Any = None
) -> tuple[bytes, dict[str, str]]:
    """A tools/call of 2026-07-28: its body and the headers that go with it."""
    message = tools_call(tool, arguments, number=number, token=token)
    message["params"].setdefault("_meta", {}).update(
        {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    )
    return json.dumps(message).encode(), {**MODERN, "mcp_method": "tools/call", "mcp_name": tool}


__all__ = [
    "MODERN",
    "NEVER",
    "SCHEMA",
    "TOKEN",
    "Client",
    "FakeTools",
    "Listening",
    "Reply",
    "forever",
    "listening",
    "living",
    "modern_call",
    "rpc",
    "tools_call",
    "until_living",
]
