"""The stage of the agent's figures: a simulated network, an owner, a peer, the real server, and an HTTP client.

The server is `simplexmcp serve` as a process of its own, over a WebSocket to the network here, or it runs in this
process with the in-process link.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from unittest.mock import patch

import h11
import trio

from benchmarks.processes import ROOT
from benchmarks.stamps import StampedCore, StampedProcess, texts
from simplexmcp import serve
from simplexmcp.arguments import parse, serve_options
from simplexmcp.sandbox.driver import drive, trio_clock
from simplexmcp.sandbox.link import SandboxLink
from simplexmcp.sandbox.network import Network
from simplexmcp.sandbox.server import serve_clients
from simplexmcp.startup import OpenedCore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

__all__ = ["LINKS", "Answer", "LinkKind", "Person", "Stage", "open_stage", "started"]

Wire = dict[str, Any]
LinkKind = Literal["WebSocket", "in process"]
LINKS: tuple[LinkKind, ...] = ("WebSocket", "in process")

_PATIENCE = 30.0  # seconds for one step: more means that something is broken


class Person:
    """Somebody on a core of the network."""

    def __init__(self, network: Network, name: str) -> None:
        self._network = network
        self._core = network.core(name.lower())
        self._events: list[Wire] = []
        self._changed = trio.Event()
        self._core.subscribe(self._hear)
        profile = {"displayName": name, "fullName": ""}
        self._do(f"/_create user {json.dumps({'profile': profile, 'pastTimestamp': False})}")
        self._do("/_start")

    def _hear(self, event: Wire) -> None:
        self._events.append(event)
        self._changed.set()
        self._changed = trio.Event()

    def _do(self, command: str) -> Wire:
        response = self._core.command(command)
        if response["type"] == "chatCmdError":
            raise RuntimeError(f"{command[:60]}: {response['chatError']}")
        return response

    async def join(self, link: str) -> str:
        """Join a group by its link; its reference here."""
        entry = self._network.find_link(link)
        assert entry is not None
        self._do(f"/_connect 1 {entry.full} {entry.short}")
        joined = await self._wait(lambda event: event if event["type"] == "userJoinedGroup" else None)
        return f"#{joined['groupInfo']['groupId']}"

    def make_group(self, name: str) -> tuple[str, str]:
        """A new group; its reference here and its short link."""
        number = self._do(f"/_group 1 {json.dumps({'displayName': name, 'fullName': ''})}")["groupInfo"]["groupId"]
        link = self._do(f"/_create link #{number} member")["groupLink"]["connLinkContact"]["connShortLink"]
        return f"#{number}", link

    def say(self, ref: str, *texts: str) -> None:
        """Send messages."""
        composed = [{"msgContent": {"type": "text", "text": text}} for text in texts]
        self._do(f"/_send {ref} json {json.dumps(composed)}")

    async def meet(self) -> None:
        """Returns when somebody has joined a group of this person."""
        await self._wait(lambda event: event["type"] == "joinedGroupMember")

    async def see(self, needle: str) -> str:
        """The first message with this text in it that came since the last look."""
        return str(await self._wait(lambda event: next((text for text in texts(event) if needle in text), None)))

    async def _wait(self, wanted: Callable[[Wire], Any]) -> Any:
        with trio.fail_after(_PATIENCE):
            while True:
                while self._events:
                    if found := wanted(self._events.pop(0)):
                        return found
                await self._changed.wait()


@dataclass(frozen=True)
class Answer:
    """The structured result of a call, and when its last byte was read."""

    content: Wire
    at: float


class Client:
    """An MCP client on one connection, as bare as can be, so that it costs little itself."""

    def __init__(self, stream: trio.SocketStream, port: int, token: str) -> None:
        self._stream, self._host, self._token = stream, f"127.0.0.1:{port}", token
        self._connection = h11.Connection(h11.CLIENT)
        self._number = 0
        self._read = 0.0

    async def ask(self, tool: str, **arguments: Any) -> None:
        """Send a call; returns when the server says that it waits."""
        self._number += 1
        if self._number > 1:
            self._connection.start_next_cycle()
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": self._number}}
        body = json.dumps({"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": params}).encode()
        headers = {
            "host": self._host, "authorization": f"Bearer {self._token}", "content-type": "application/json",
            "accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25",
            "content-length": str(len(body)),
        }  # fmt: skip
        request = h11.Request(method="POST", target="/mcp", headers=list(headers.items()))
        parts = (request, h11.Data(data=body), h11.EndOfMessage())
        await self._stream.send_all(b"".join(self._connection.send(part) or b"" for part in parts))
        response = await self._next()
        if not isinstance(response, h11.Response) or response.status_code != 200:
            raise RuntimeError(f"The server answered {response!r}.")

    async def answer(self) -> Answer:
        """The result of the call that was asked."""
        data = b""
        while not isinstance(event := await self._next(), h11.EndOfMessage):
            assert isinstance(event, h11.Data)
            data += event.data
        message = json.loads(data.strip().rpartition(b"\n")[2].removeprefix(b"data: "))
        return Answer(message["result"]["structuredContent"], self._read)

    async def aclose(self) -> None:
        """Leave."""
        await self._stream.aclose()

    async def _next(self) -> Any:
        with trio.fail_after(_PATIENCE):
            while (event := self._connection.next_event()) is h11.NEED_DATA:
                data = await self._stream.receive_some()
                self._read = time.perf_counter()
                self._connection.receive_data(data)
        return event


@dataclass
class Stage:
    """A server with its owner Alice, and a group of Bob's with the agent in it."""

    network: Network
    port: int
    data: Path
    server: StampedProcess | StampedCore
    client: Client
    alice: Person
    control: str
    """The control chat on Alice's side."""
    bob: Person
    group: str
    """The group on Bob's side."""
    chat: str = ""
    """The group on the agent's side."""

    @property
    def pid(self) -> int:
        """The server's process."""
        return int(json.loads((self.data / "server.json").read_text())["pid"])

    @property
    def token(self) -> str:
        """What opens the server."""
        return (self.data / "token").read_text().strip()

    async def approve(self) -> str:
        """Alice approves the next card; the text of her command."""
        card = await self.alice.see("I want to ")
        command = re.findall(r"/'?(approve [^'\n]*\d)'?", card)[0]
        self.alice.say(self.control, f"/{command}")
        return f"/{command}"


@asynccontextmanager
async def open_stage(link: LinkKind) -> AsyncIterator[Stage]:
    """Everything set up, with the server on this kind of link."""
    with tempfile.TemporaryDirectory(prefix="simplexmcp-bench-") as folder:
        async with trio.open_nursery() as nursery:
            network = Network(trio_clock(), population=False)
            nursery.start_soon(drive, network)
            data, log = Path(folder) / "data", Path(folder) / "log"
            if link == "WebSocket":
                server: StampedProcess | StampedCore = StampedProcess(log)
                serving = _in_a_process(network, data, log)
            else:
                server = network.cores["agent"] = StampedCore(network)
                serving = _in_this_process(server, data)
            async with serving as lines:
                stage = await _set(network, server, data, lines)
                try:
                    yield stage
                finally:
                    await stage.client.aclose()
            nursery.cancel_scope.cancel()


async def _set(network: Network, server: StampedProcess | StampedCore, data: Path, lines: list[str]) -> Stage:
    alice, bob = Person(network, "Alice"), Person(network, "Bob")
    control = await alice.join(next(line for line in lines if line.startswith("https://")))
    await alice.see("I'm your agent.")
    group, link = bob.make_group("Trail")
    port = int(re.findall(r":(\d+)/mcp", "\n".join(lines))[0])
    client = Client(await trio.open_tcp_stream("127.0.0.1", port), port, (data / "token").read_text().strip())
    stage = Stage(network, port, data, server, client, alice, control, bob, group)
    await stage.client.ask("connect", target=link, wait=60, limit=1)
    await stage.approve()
    await bob.meet()
    bob.say(group, "Welcome.")
    stage.chat = (await stage.client.answer()).content["chat"]
    return stage


@asynccontextmanager
async def _in_a_process(network: Network, data: Path, log: Path) -> AsyncIterator[list[str]]:
    async with trio.open_nursery() as nursery:
        port: int = await nursery.start(serve_clients, network, 0)
        async with started(f"ws://127.0.0.1:{port}/agent", data, "benchmarks.stamped", str(log)) as lines:
            yield lines
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def _in_this_process(core: StampedCore, data: Path) -> AsyncIterator[list[str]]:
    options = serve_options(parse("serve", _arguments("sandbox", data)))
    lines: list[str] = []
    ready, stop = trio.Event(), serve.Stop()

    @asynccontextmanager
    async def open_core(*_: Any) -> AsyncIterator[OpenedCore]:
        async with trio.open_nursery() as nursery:
            yield OpenedCore(SandboxLink(core.network, core, nursery))
            nursery.cancel_scope.cancel()

    with core.moments.watching_the_disk():
        async with trio.open_nursery() as nursery:
            with patch.object(serve, "open_core", open_core):
                nursery.start_soon(lambda: serve.serve(options, stop, out=lines.append, on_ready=lambda _: ready.set()))
                with trio.fail_after(_PATIENCE):
                    await ready.wait()
            yield lines
            stop.asked.set()


@asynccontextmanager
async def started(core: str, data: Path, *module: str) -> AsyncIterator[list[str]]:
    """`simplexmcp serve` (or the same by another module) as a process of its own, ended with the context: its lines up
    to "Listening"."""
    # As for a person: Python keeps what it compiled.
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", *(module or ("simplexmcp",)), "serve", *_arguments(core, data)],
        stdout=subprocess.PIPE,
        env=env,
        cwd=ROOT,
    )
    assert process.stdout is not None
    try:
        printed = b""
        with trio.fail_after(_PATIENCE):
            while b"Listening" not in printed or not printed.endswith(b"\n"):
                if not (more := await process.stdout.receive_some()):
                    raise RuntimeError("the server did not start; it printed: " + printed.decode())
                printed += more
        yield printed.decode().splitlines()
    finally:
        with trio.CancelScope(shield=True):
            process.terminate()
            with trio.move_on_after(10):
                await process.wait()
            if process.returncode is None:
                process.kill()
            await process.wait()
            await process.stdout.aclose()


def _arguments(core: str, data: Path) -> list[str]:
    """Those of `serve`."""
    return ["bench", "--core", core, "--data", str(data), "--port", "0", "--qr-code", "none", "--stop-wait", "0"]
