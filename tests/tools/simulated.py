"""The tools on the simulated network: the agent's core behind the real ChatApi, and other people as cores beside it."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from simplexmcp.core.api import ChatApi
from simplexmcp.files.room import FileRoom
from simplexmcp.sandbox.link import open_sandbox
from simplexmcp.standing import StandingApprovals
from simplexmcp.tools import AgentTools
from simplexmcp.watch import Watch
from tests import fakes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from simplexmcp.sandbox.link import SandboxLink
    from simplexmcp.sandbox.network import Network

Wire = dict[str, Any]


class Person:
    """Somebody else's core, started, with a user."""

    def __init__(self, network: Network, name: str, *, bot: bool = False) -> None:
        self.core = network.core(name.lower())
        self.events: list[Wire] = []
        self.core.subscribe(self.events.append)
        profile = {"displayName": name, "fullName": "", **({"peerType": "bot"} if bot else {})}
        self.do(f"/_create user {json.dumps({'profile': profile, 'pastTimestamp': False})}")
        self.do("/_start")

    def do(self, command: str) -> Wire:
        """The answer to a command; a refusal is a failure of the test."""
        response = self.core.command(command)
        assert response["type"] != "chatCmdError", (command, response)
        return response

    def address(self, *, business: bool = False, reply: str | None = None) -> str:
        """A new address that accepts everybody; its short link."""
        link = self.do("/_address 1")["connLinkContact"]
        answer = {"autoReply": {"type": "text", "text": reply}} if reply else {}
        accept = {"businessAddress": business, "autoAccept": {"acceptIncognito": False}, **answer}
        self.do(f"/_address_settings 1 {json.dumps(accept)}")
        return link["connShortLink"]

    def group(self, name: str) -> str:
        """A new group with history; its short link."""
        profile = {"displayName": name, "fullName": "", "groupPreferences": {"history": {"enable": "on"}}}
        number = self.do(f"/_group 1 {json.dumps(profile)}")["groupInfo"]["groupId"]
        return self.do(f"/_create link #{number} member")["groupLink"]["connLinkContact"]["connShortLink"]

    def say(self, ref: str, *texts: str, quoted: int | None = None) -> list[int]:
        """Send texts; their numbers here."""
        numbers: list[int] = []
        for text in texts:
            composed: Wire = {"msgContent": {"type": "text", "text": text}}
            if quoted is not None:
                composed["quotedItemId"] = quoted
            sent = self.do(f"/_send {ref} json {json.dumps([composed])}")
            numbers.append(sent["chatItems"][0]["chatItem"]["meta"]["itemId"])
        return numbers

    def edit(self, ref: str, number: int, text: str) -> None:
        """Change an own message, or end a live one."""
        body = {"msgContent": {"type": "text", "text": text}, "mentions": {}}
        self.do(f"/_update item {ref} {number} json {json.dumps(body)}")

    def texts(self) -> list[str]:
        """What it was sent."""
        items = [e["chatItem"] for event in self.events if event["type"] == "newChatItems" for e in event["chatItems"]]
        return [i["meta"]["itemText"] for i in items if i["content"]["type"] == "rcvMsgContent"]


class Simulation:
    """The agent on the network; `owner` approves what is posted, when it is on."""

    def __init__(self, link: SandboxLink, folder: Path, mode: str) -> None:
        self.link, self.network = link, link.network
        self.api = ChatApi(link)
        self.watch = Watch()
        self.desk = fakes.Desk(folder, mode)
        self.actions = self.desk.actions
        self.actions.standing = StandingApprovals(
            self.api, self.desk.board, fakes.TrioClock(), enabled=mode == "requests"
        )
        self.actions.files = self.actions.standing.of_files()
        self.tools: AgentTools
        self.files: FileRoom

    def person(self, name: str, *, bot: bool = False) -> Person:
        return Person(self.network, name, bot=bot)

    async def use(self, tool: str, /, **arguments: Any) -> Wire:
        """One call whose answer reaches the agent."""
        result = await self.tools.call(tool, arguments, fakes.Call())
        if result.settle is not None:
            result.settle()
        return result.content

    async def pump(self) -> None:
        async for event in self.link.events:
            self.files.on_event(event)
            self.watch.on_event(event)
            self.tools.on_event(event)

    async def owner(self) -> None:
        """Approves every action a moment after its card was posted."""
        seen: set[int] = set()
        while True:
            await trio.sleep(0.1)
            for action in self.actions.pending():
                if action.number not in seen and action.posted.is_set():
                    seen.add(action.number)
                    self.actions.approve(action.number, None, fakes.ALICE)


@asynccontextmanager
async def simulation(folder: Path, mode: str = "requests") -> AsyncIterator[Simulation]:
    """A network with the agent in it."""
    async with open_sandbox(None, "agent", population=False) as link:
        world = Simulation(link, folder, mode)
        await world.api.create_user("My Agent")
        await world.api.start()
        world.files = FileRoom(world.api, folder, world.desk.audit, fakes.TrioClock(), fakes.News())
        world.tools = AgentTools(world.api, world.actions, world.watch, fakes.TrioClock(), world.files)
        async with world.desk.running(), trio.open_nursery() as nursery:
            await nursery.start(world.files.run)
            nursery.start_soon(world.pump)
            nursery.start_soon(world.owner)
            yield world
            nursery.cancel_scope.cancel()
