"""The whole program for a test: the sandbox behind a real WebSocket, `serve`, people on cores, and a real MCP client.

Time skips what everybody only waits for (see `conftest`), so that waits of seconds cost little.
"""

from __future__ import annotations

import json
import math
import socket
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import httpx2
import trio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from simplexmcp import serve
from simplexmcp.core.api import ChatApi, count
from simplexmcp.core.websocket import open_websocket
from simplexmcp.options import ServeOptions
from simplexmcp.sandbox.driver import trio_clock
from simplexmcp.sandbox.network import Network
from simplexmcp.sandbox.server import serve_network
from tests.clocks import within
from tests.fakes import TrioClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

DEADLINE = 60.0


class Lines:
    """What a server prints, and waiting for it."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._over: list[str] | None = None
        self._changed = trio.Event()

    def end(self, errors: list[str]) -> None:
        """No more lines will come; `errors` say why."""
        self._over = errors
        self._changed.set()

    def __call__(self, line: str) -> None:
        self.all.append(line)
        self._changed.set()
        self._changed = trio.Event()

    async def see(self, needle: str) -> str:
        """The first line with this text."""
        with within(DEADLINE):
            while True:
                for line in self.all:
                    if needle in line:
                        return line
                assert self._over is None, ("it ended", self.all, self._over)
                await self._changed.wait()


class Person:
    """Somebody on a core of the network, over a WebSocket."""

    def __init__(self, api: ChatApi, name: str) -> None:
        self.api, self.name = api, name
        self.events: list[dict[str, Any]] = []
        self._changed = trio.Event()

    @property
    def changed(self) -> trio.Event:
        """Set at the next event."""
        return self._changed

    async def pump(self) -> None:
        async for event in self.api.link.events:
            self.events.append(event)
            self._changed.set()
            self._changed = trio.Event()

    async def wait(self, wanted: Callable[[dict[str, Any]], Any]) -> Any:
        """The first event of which `wanted` makes something true; that."""
        with within(DEADLINE):
            seen = 0
            while True:
                for event in self.events[seen:]:
                    seen += 1
                    if got := wanted(event):
                        return got
                await self._changed.wait()

    async def join(self, link: str) -> str:
        """Join a group by its link as the apps do; its reference."""
        plan = await self.api.connect_plan(link)
        data = plan["connectionPlan"]["groupLinkPlan"]["groupSLinkData_"]
        chat = await self.api.prepare_group(plan["connLink"], data)
        number = chat["chatInfo"]["groupInfo"]["groupId"]
        await self.api.connect_group(number, None)
        await self.wait(lambda e: e["type"] == "userJoinedGroup" and e["groupInfo"]["groupId"] == number)
        return f"#{number}"

    async def say(self, ref: str, text: str, **composed: Any) -> int:
        """Send a message; its item ID here."""
        item = (await self.api.send_messages(ref, [{"msgContent": {"type": "text", "text": text}, **composed}]))[0]
        return int(item["chatItem"]["meta"]["itemId"])

    async def texts(self, ref: str) -> list[str]:
        chat = await self.api.get_chat(ref, count(100))
        return [item["meta"]["itemText"] for item in chat["chatItems"]]

    async def see(self, ref: str, needle: str) -> str:
        """The whole text of the first message with this text in it, new or edited."""
        with within(DEADLINE):
            while True:
                changed = self._changed
                for text in await self.texts(ref):
                    if needle in text:
                        return text
                await changed.wait()

    async def make_address(self, *, greeting: str | None = None, business: bool = False) -> str:
        """A contact address that accepts everybody; its short link."""
        user = self.api.user_id
        pair = (await self.api.link.send(f"/_address {user}"))["connLinkContact"]
        settings: dict[str, Any] = {"businessAddress": business, "autoAccept": {"acceptIncognito": False}}
        if greeting:
            settings["autoReply"] = {"type": "text", "text": greeting}
        await self.api.link.send(f"/_address_settings {user} {json.dumps(settings)}")
        return str(pair["connShortLink"])

    async def contact(self) -> str:
        """The first real contact of this person, once connected."""
        event = await self.wait(lambda e: e if e["type"] == "contactConnected" else None)
        return f"@{event['contact']['contactId']}"

    async def make_group(self, name: str, *, role: str = "member") -> tuple[str, str]:
        """A group of this person with history; its reference and link."""
        profile = {"displayName": name, "fullName": "", "groupPreferences": {"history": {"enable": "on"}}}
        number = (await self.api.new_group(profile))["groupId"]
        link = await self.api.create_group_link(number, role)  # type: ignore[arg-type]
        return f"#{number}", link["connLinkContact"]["connShortLink"]


class Agent:
    """A real MCP client."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.said: list[str] = []

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured result of a call; the sentence of a refused one as `{"error": …}`."""

        async def progress(_value: float, _total: float | None, text: str | None) -> None:
            self.said.append(text or "")

        with trio.fail_after(DEADLINE * 100_000):
            result = await self.client.call_tool(tool, arguments, progress_callback=progress)
        content = dict(result.structured_content or {})
        assert bool(result.is_error) == ("error" in content and "status" not in content), (tool, content)
        return content


@dataclass
class Server:
    """A running `serve`."""

    options: ServeOptions
    lines: Lines
    stop: serve.Stop
    ended: trio.Event
    port: int = 0
    errors: list[BaseException] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def token(self) -> str:
        return (self.options.data / "token").read_text().strip()

    async def link(self) -> str:
        """The link to the control chat that it printed."""
        return await self.lines.see("https://")

    async def end(self) -> None:
        """Stop as one Ctrl-C does, and wait."""
        self.stop.asked.set()
        with within(DEADLINE):
            await self.ended.wait()

    @asynccontextmanager
    async def agent(self, mode: str = "legacy") -> AsyncIterator[Agent]:
        headers = {"Authorization": f"Bearer {self.token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=None) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode, cache=None) as client,
        ):
            yield Agent(client)


class World:
    """The network, and everything that a test starts in it."""

    def __init__(self, folder: Path, nursery: trio.Nursery, network: Network, port: int) -> None:
        self.folder, self.nursery, self.network, self.port = folder, nursery, network, port

    def core_url(self, profile: str) -> str:
        return f"ws://127.0.0.1:{self.port}/{profile}"

    def options(self, **changes: Any) -> ServeOptions:
        options = ServeOptions(
            name="my-agent", display_name="My Agent", data=self.folder / "data", data_given=False, port=0,
            approve="requests", owners=None, reset_owners=False, expire_hours=23, stop_wait=10, qr_code="none",
            core=self.core_url("agent"), smp_servers=(), xftp_servers=(), log_level="warning", database_key_file=None,
        )  # fmt: skip
        return replace(options, **changes)

    async def serve(self, **changes: Any) -> Server:
        """Start a server; returns when it listens."""
        server = Server(self.options(**changes), Lines(), serve.Stop(), trio.Event())
        ready = trio.Event()

        def on_ready(port: int) -> None:
            server.port = port
            ready.set()

        async def run() -> None:
            try:
                with server.stop.everything:
                    await serve.serve(
                        server.options, server.stop, out=server.lines, clock=TrioClock(), on_ready=on_ready
                    )
            finally:
                server.ended.set()

        self.nursery.start_soon(run)
        with within(DEADLINE):
            await ready.wait()
        return server

    @asynccontextmanager
    async def person(self, name: str, *, bot: bool = False) -> AsyncIterator[Person]:
        async with open_websocket(self.core_url(name.lower())) as link, trio.open_nursery() as nursery:
            person = Person(ChatApi(link), name)
            if await person.api.active_user() is None:
                await person.api.create_user(name, "bot" if bot else "human")
            await person.api.start()
            nursery.start_soon(person.pump)
            yield person
            nursery.cancel_scope.cancel()

    @asynccontextmanager
    async def flow(self, **changes: Any) -> AsyncIterator[Flow]:
        """A server with its owner Alice and an agent: where most flows begin."""
        server = await self.serve(**changes)
        async with self.person("Alice") as alice:
            ref = await self.owner(server, alice)
            async with server.agent() as agent:
                yield Flow(self, server, alice, ref, agent)
        await server.end()
        # No post of the server held a command that it did not mean.
        assert not [line for line in server.lines.all if "other commands in the card" in line]

    async def owner(self, server: Server, person: Person) -> str:
        """Make a person the owner by the printed link; the control chat's reference there."""
        ref = await person.join(await server.link())
        await person.see(ref, "I'm your agent.")
        return ref


@dataclass
class Flow:
    """A server with an owner and an agent; `ref` is the control chat on the owner's side."""

    world: World
    server: Server
    alice: Person
    ref: str
    agent: Agent

    async def tap(self, words: str) -> None:
        """The owner taps a command on a card."""
        await self.alice.say(self.ref, f"/{words}")

    async def card(self, needle: str) -> str:
        """A card as the owner sees it."""
        return await self.alice.see(self.ref, needle)

    async def result_of(self, tool: str, needle: str, words: str, **arguments: Any) -> dict[str, Any]:
        """A call, and the owner's word on the card that shows `needle`."""
        result: dict[str, Any] = {}

        async def call() -> None:
            result.update(await self.agent.call(tool, **arguments))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await self.card(needle)
            await self.tap(words)
        return result


@asynccontextmanager
async def open_world(folder: Path, *, population: bool = False) -> AsyncIterator[World]:
    """A network on a free port, with nobody in it but its population when asked."""
    async with trio.open_nursery() as nursery:
        network = Network(trio_clock(), population=population)
        port = await nursery.start(serve_network, network, 0)
        yield World(folder, nursery, network, port)
        nursery.cancel_scope.cancel()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


FOREVER = math.inf
