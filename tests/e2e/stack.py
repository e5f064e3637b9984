"""The agent server's own wiring on a network in the same process: no HTTP, no socket, time that a test moves.

`serve._Server` puts its parts together as in the program; only the listener is replaced by a door for the test, and
the link writes down every command that leaves. People are cores that are driven synchronously.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from simplexmcp import listener
from simplexmcp import serve as serving
from simplexmcp.audit import read_audit
from simplexmcp.folder import open_folder
from simplexmcp.options import ServeOptions
from simplexmcp.sandbox.driver import drive, trio_clock
from simplexmcp.sandbox.link import SandboxLink
from simplexmcp.sandbox.network import Network
from tests.fakes import TrioClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from simplexmcp.actions import Actions
    from simplexmcp.control import ControlChat
    from simplexmcp.tooling import ToolResult
    from simplexmcp.tools import AgentTools

Wire = dict[str, Any]

SETTLE = 2.0
"""Seconds within which the network and the server have done what an action of somebody leads to."""


@dataclass
class Sent:
    """A command that the server gave to the core: `number` counts them over all runs."""

    number: int
    at: float
    text: str
    response: Wire | None = None
    done: bool = False
    """Whether the core carried it out."""

    def sends(self, ref: str, text: str) -> bool:
        """Whether it is the send of exactly this text to this chat."""
        start = f"/_send {ref} json "
        if not self.text.startswith(start):
            return False
        composed = json.loads(self.text[len(start) :])
        return [c["msgContent"] for c in composed] == [{"type": "text", "text": text}]


class RecordingLink:
    """A link that writes every command down, and can hold some back."""

    def __init__(self, link: SandboxLink, log: list[Sent], on_sent: Callable[[Sent], None]) -> None:
        self._link, self._log, self._on_sent = link, log, on_sent
        self.events = link.events
        self._before: dict[str, trio.Event] = {}
        self._after: dict[str, trio.Event] = {}

    @property
    def down_since(self) -> float | None:
        return self._link.down_since

    def hold(self, prefix: str, *, done: bool = False) -> trio.Event:
        """Commands that begin so wait for this event before they reach the core, or (`done`) before their answer is
        given."""
        where = self._after if done else self._before
        where[prefix] = trio.Event()
        return where[prefix]

    def release(self) -> None:
        """Nothing is held any more."""
        for where in (self._before, self._after):
            for event in where.values():
                event.set()
            where.clear()

    async def send(self, command: str) -> Wire:
        sent = Sent(len(self._log), trio.current_time(), command)
        self._log.append(sent)
        self._on_sent(sent)
        await self._wait(self._before, command)
        sent.response = await self._link.send(command)
        sent.done = True
        await self._wait(self._after, command)
        return sent.response

    @staticmethod
    async def _wait(where: dict[str, trio.Event], command: str) -> None:
        for prefix, event in list(where.items()):
            if command.startswith(prefix):
                await event.wait()


class Person:
    """Somebody else's core, started, with a user; driven synchronously."""

    def __init__(self, network: Network, name: str, *, bot: bool = False) -> None:
        self.network, self.name = network, name
        self.core = network.core(name.lower())
        self.events: list[Wire] = []
        self.core.subscribe(self.events.append)
        profile = {"displayName": name, "fullName": "", **({"peerType": "bot"} if bot else {})}
        self.do(f"/_create user {json.dumps({'profile': profile, 'pastTimestamp': False})}")
        self.do("/_start")

    def do(self, command: str) -> Wire:
        """The answer to a command; a refusal is a failure of the test."""
        response = self.core.command(command)
        assert response["type"] != "chatCmdError", (self.name, command, response)
        return response

    def rename(self, name: str) -> None:
        self.do(f"/_profile 1 {json.dumps({'displayName': name, 'fullName': ''})}")

    def join(self, link: str) -> None:
        entry = self.network.find_link(link)
        assert entry is not None
        self.do(f"/_connect 1 {entry.full} {entry.short}")

    @property
    def newest_group(self) -> str:
        return f"#{max(self.core.state.groups)}"

    def make_group(self, name: str) -> tuple[str, str]:
        """A new group with history; its reference here and its short link."""
        profile = {"displayName": name, "fullName": "", "groupPreferences": {"history": {"enable": "on"}}}
        number = self.do(f"/_group 1 {json.dumps(profile)}")["groupInfo"]["groupId"]
        link = self.do(f"/_create link #{number} member")["groupLink"]["connLinkContact"]["connShortLink"]
        return f"#{number}", link

    def make_address(self) -> str:
        """A contact address that accepts everybody; its short link."""
        link = self.do("/_address 1")["connLinkContact"]["connShortLink"]
        accept = {"businessAddress": False, "autoAccept": {"acceptIncognito": False}}
        self.do(f"/_address_settings 1 {json.dumps(accept)}")
        return str(link)

    def say(self, ref: str, text: str, *, options: str = "", **composed: Any) -> int:
        """Send a message; its item ID here."""
        message = {"msgContent": {"type": "text", "text": text}, **composed}
        sent = self.do(f"/_send {ref}{options} json {json.dumps([message])}")
        return int(sent["chatItems"][0]["chatItem"]["meta"]["itemId"])

    def items(self, ref: str) -> list[Wire]:
        """The newest 1,000 items of a chat."""
        return list(self.do(f"/_get chat {ref} count=1000")["chat"]["chatItems"])

    def texts(self, ref: str) -> list[str]:
        return [str(item["meta"]["itemText"]) for item in self.items(ref)]

    def members(self, ref: str) -> dict[str, Wire]:
        """The current members of a group by display name."""
        members = self.do(f"/_members {ref}")["group"]["members"]
        gone = ("left", "removed", "deleted")
        return {m["memberProfile"]["displayName"]: m for m in members if m["memberStatus"] not in gone}

    def set_role(self, ref: str, name: str, role: str) -> None:
        number = self.members(ref)[name]["groupMemberId"]
        self.do(f"/_member role {ref} {number} {role}")

    def remove(self, ref: str, name: str) -> None:
        self.do(f"/_remove {ref} {self.members(ref)[name]['groupMemberId']}")


@dataclass
class Pending:
    """A call of the agent: its result when it has one, what it was told meanwhile."""

    tool: str
    arguments: Wire
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    result: Wire | None = None
    said: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.said.append(text)

    def lose(self) -> None:
        """The client is gone."""
        self.scope.cancel()


class Stack:
    """The network, the people in it, and the server when it runs."""

    def __init__(self, folder: Path, nursery: trio.Nursery, network: Network, clock: MockClock) -> None:
        self.folder, self.nursery, self.network, self.clock = folder, nursery, network, clock
        self.lines: list[str] = []
        self.sent: list[Sent] = []
        self.on_sent: Callable[[Sent], None] = lambda _sent: None
        self.link: RecordingLink
        self.tools: AgentTools
        self.control: ControlChat
        self._stop = serving.Stop()
        self._run = trio.CancelScope()
        self._ended = trio.Event()
        self.running = False

    # The server

    @property
    def actions(self) -> Actions:
        return self.tools._kit.actions

    def options(self, **changes: Any) -> ServeOptions:
        options = ServeOptions(
            name="my-agent", display_name="My Agent", data=self.folder / "data", data_given=False, port=0,
            approve="requests", owners=None, reset_owners=False, expire_hours=23, stop_wait=2, qr_code="none",
            core="sandbox", smp_servers=(), xftp_servers=(), log_level="warning", database_key_file=None,
        )  # fmt: skip
        return replace(options, **changes)

    async def start(self, **changes: Any) -> None:
        """Start the server; returns when it listens, or raises what ended it."""
        self._stop, self._run, self._ended = serving.Stop(), trio.CancelScope(), trio.Event()
        ready = trio.Event()
        self.nursery.start_soon(self._serve, self.options(**changes), ready)
        await self.settle()
        assert ready.is_set(), self.lines
        self.running = True

    async def _serve(self, options: ServeOptions, ready: trio.Event) -> None:
        async def serve_tools(
            tools: AgentTools, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED, **_: Any
        ) -> None:
            self.tools = tools
            task_status.started(5226)
            await trio.sleep_forever()

        door = SimpleNamespace(serve=serve_tools, Closing=listener.Closing)
        core = self.network.core("agent")
        real_open = serving.open_control_chat

        async def open_control_chat(*given: Any) -> ControlChat:
            self.control = await real_open(*given)
            return self.control

        try:
            with (
                self._run,
                patch.object(serving, "listener", door),
                patch.object(serving, "open_control_chat", open_control_chat),
                open_folder(options.name, options.data, self.lines.append) as folder,
            ):
                async with trio.open_nursery() as nursery:
                    self.link = RecordingLink(SandboxLink(self.network, core, nursery), self.sent, self._note)
                    server = serving._Server(options, folder, self.link, self._stop, self.lines.append, TrioClock())
                    await server.live(lambda _port: ready.set())
                    nursery.cancel_scope.cancel()
        finally:
            core.subscribe(None)
            self.running = False
            self._ended.set()

    def _note(self, sent: Sent) -> None:
        self.on_sent(sent)

    async def stop(self) -> None:
        """Stop as one Ctrl-C does."""
        self._stop.asked.set()
        await self.settle(60)
        assert self._ended.is_set()

    async def kill(self) -> None:
        """End as a crash does: nothing is told to anybody."""
        self._run.cancel()
        await self._ended.wait()

    def audit(self) -> list[Wire]:
        return list(read_audit(self.folder / "data" / "audit.jsonl"))

    # The agent

    def call(self, tool: str, /, *, deliver: bool = True, **arguments: Any) -> Pending:
        """Begin a call; without `deliver` its result is lost on the way."""
        pending = Pending(tool, arguments)
        self.nursery.start_soon(self._call, self.tools, pending, deliver)
        return pending

    async def _call(self, tools: AgentTools, pending: Pending, deliver: bool) -> None:
        with pending.scope:
            result: ToolResult = await tools.call(pending.tool, pending.arguments, pending)
            if deliver and result.settle is not None:
                result.settle()
            pending.result = dict(result.content)

    async def use(self, tool: str, /, **arguments: Any) -> Wire:
        """A call that ends by itself; its result."""
        pending = self.call(tool, **arguments)
        await self.settle()
        assert pending.result is not None, (tool, arguments)
        return pending.result

    # Time and people

    async def settle(self, seconds: float = SETTLE) -> None:
        """Let everything happen that happens within so many seconds."""
        end = trio.current_time() + seconds
        while True:
            await wait_all_tasks_blocked()
            left = trio.lowlevel.current_statistics().seconds_to_next_deadline
            if trio.current_time() + left > end:
                return
            self.clock.jump(max(left, 0) + 1e-6)

    async def pass_time(self, seconds: float) -> None:
        """Let time go by, in steps of at most a minute."""
        while seconds > 0:
            step = min(seconds, 60.0)
            self.clock.jump(step)
            seconds -= step
            await self.settle(0.5)

    def person(self, name: str, *, bot: bool = False) -> Person:
        return Person(self.network, name, bot=bot)

    async def owner(self, person: Person) -> str:
        """Make somebody the owner by the printed link; the control chat's reference there."""
        person.join(next(line for line in reversed(self.lines) if line.startswith("https://")))
        await self.settle()
        return person.newest_group

    def outward(self) -> list[Sent]:
        """The commands that reach others outside the control chat, in order."""
        return [sent for sent in self.sent if is_outward(sent.text, self.control.ref)]


def is_outward(command: str, control: str) -> bool:
    """Whether a command reaches others outside the control chat."""
    verb, _, rest = command.partition(" ")
    ref = rest.split(" ", 1)[0]
    if verb in ("/_send", "/_leave", "/_reaction"):
        return ref != control
    if verb == "/_connect":
        return ref != "plan"
    if verb == "/_update":
        return rest.split(" ")[1] != control
    if verb == "/_delete":
        words = rest.split(" ")
        if words[0] == "item":
            return words[1] != control
        return words[0] != "link" and ref != control and not command.endswith(" notify=off")
    return False


@asynccontextmanager
async def open_stack(folder: Path, clock: MockClock) -> AsyncIterator[Stack]:
    """A network with nobody in it, and a server that is not started."""
    network = Network(trio_clock(), population=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(drive, network)
        stack = Stack(folder, nursery, network, clock)
        yield stack
        if stack.running:
            await stack.kill()
        nursery.cancel_scope.cancel()


@dataclass
class Scene:
    """A started server with its owner Alice, and Bob's group Trail with the agent in it."""

    stack: Stack
    alice: Person
    room: str
    """The control chat on Alice's side."""
    bob: Person
    trail: str
    """The group on Bob's side."""
    chat: str
    """The group on the agent's side."""

    async def tap(self, words: str) -> None:
        """Alice sends a command."""
        self.alice.say(self.room, f"/{words}")
        await self.stack.settle()

    def card(self, needle: str) -> str:
        """The newest post with this text, as Alice sees it."""
        found = [text for text in self.alice.texts(self.room) if needle in text]
        assert found, (needle, self.alice.texts(self.room))
        return found[-1]

    def sees(self, needle: str) -> bool:
        return any(needle in text for text in self.alice.texts(self.room))

    async def ask(self, text: str, **more: Any) -> Pending:
        """The agent asks to send a text to Trail."""
        pending = self.stack.call("send", chat=self.chat, text=text, **more)
        await self.stack.settle()
        return pending

    def heard(self) -> list[str]:
        """What Bob's group heard of the agent."""
        return [
            item["meta"]["itemText"]
            for item in self.bob.items(self.trail)
            if item["chatDir"]["type"] == "groupRcv" and item["content"]["type"] == "rcvMsgContent"
        ]


@asynccontextmanager
async def open_scene(folder: Path, clock: MockClock, **options: Any) -> AsyncIterator[Scene]:
    """A scene; in every mode the first action (a connect) is number 1."""
    async with open_stack(folder, clock) as stack:
        await stack.start(**options)
        alice, bob = stack.person("Alice"), stack.person("Bob")
        room = await stack.owner(alice)
        trail, link = bob.make_group("Trail")
        call = stack.call("connect", target=link, wait=30, idle=1)
        await stack.settle()
        if options.get("approve") != "host":
            alice.say(room, "/approve 1")
        await stack.settle(10)
        assert call.result is not None, (call.said, alice.texts(room))
        assert call.result["connected"], call.result
        yield Scene(stack, alice, room, bob, trail, call.result["chat"])
