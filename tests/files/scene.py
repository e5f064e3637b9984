"""An agent on the simulated network with its downloads, and Bob who sends files, in a contact or in a group."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import trio
from trio.lowlevel import current_clock
from trio.testing import MockClock

from simplexmcp import messages
from simplexmcp.chats import Chat, chat_of
from simplexmcp.core.api import ChatApi, around, count
from simplexmcp.core.link import LINK_DOWN
from simplexmcp.files.downloads import Downloads
from simplexmcp.files.folders import Folders
from simplexmcp.sandbox.link import open_sandbox
from tests.clocks import IDLE
from tests.tools.simulated import Person

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from simplexmcp.messages import ChatFile
    from simplexmcp.sandbox.link import SandboxLink

__all__ = ["Scene", "open_scene"]


class Scene:
    """`chat` is Bob's chat as the agent has it, `to_agent` the same as Bob has it."""

    def __init__(self, link: SandboxLink, folder: Path, nursery: trio.Nursery) -> None:
        self.link, self.network, self.folder = link, link.network, folder
        self.nursery = nursery
        self.sent: list[str] = []
        self.api = ChatApi(_Heard(link, self.sent))
        self.folders = Folders(folder / "DATA")
        self.room = 1 << 40
        self.downloads = Downloads(self.api, self.folders, free=lambda _: self.room)
        self.bob: Person
        self.chat: Chat
        self.to_agent = ""
        self.seen: list[dict[str, Any]] = []
        self.before: Callable[[dict[str, Any]], object] = lambda _: None
        """Called with each event before the downloads get it."""

    async def restart(self) -> None:
        """The server stops, and starts again on a core that went on; what the old one was doing is cancelled."""
        self._running.cancel()
        self.downloads = Downloads(self.api, self.folders, free=lambda _: self.room)
        await self.run()

    async def run(self) -> None:
        """Start the downloads."""
        self._running = trio.CancelScope()

        async def run(downloads: Downloads, scope: trio.CancelScope, *, task_status: trio.TaskStatus[None]) -> None:
            with scope:
                await downloads.run(task_status=task_status)

        await self.nursery.start(run, self.downloads, self._running)

    async def pump(self) -> None:
        async for event in self.link.events:
            self.seen.append(event)
            self.before(event)
            if event["type"] != LINK_DOWN:
                self.downloads.on_event(event)

    def make(self, size: int = 30_000, name: str = "report.pdf") -> Path:
        """A file of Bob's with bytes that differ."""
        path = self.folder / "bob" / name
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            block = bytes(n % 251 for n in range(1 << 16))
            for at in range(0, size, len(block)):
                file.write(block[: size - at])
        return path

    def send(self, path: Path, kind: str = "file", **content: Any) -> int:
        """Bob sends a file; the number of the item on his side."""
        composed = {
            "msgContent": {"type": kind, "text": "see this", **content},
            "fileSource": {"filePath": str(path)},
        }
        sent = self.bob.do(f"/_send {self.to_agent} json {json.dumps([composed])}")
        return sent["chatItems"][0]["chatItem"]["meta"]["itemId"]

    async def offer(self, size: int = 30_000, name: str = "report.pdf", **content: Any) -> ChatFile:
        """A file that Bob sent and uploaded, as the agent has it."""
        self.send(self.make(size, name), **content)
        with quickly():
            await trio.sleep(20)
        return await self.newest()

    async def newest(self) -> ChatFile:
        """The newest file of the chat."""
        read = await self.api.get_chat(self.chat.ref, count(100))
        return [file for item in read["chatItems"] if (file := messages.file_of(item, self.chat))][-1]

    async def file(self, item: int) -> ChatFile:
        """The file of an item as it is now."""
        read = await self.api.get_chat(self.chat.ref, around(item, 0))
        found = messages.file_of(read["chatItems"][0], self.chat)
        assert found is not None
        return found

    async def state(self, item: int) -> str:
        """Its state as the agent sees it."""
        return self.downloads.look(self.chat, await self.file(item))[0]

    async def get(self, file: ChatFile, place: Any = "received", **options: Any) -> Path:
        """One download from beginning to end."""
        async with self.downloads.fetch(self.chat, file, place, **options) as transfer:
            return await transfer.done()

    def core(self, command: str) -> None:
        """Something that happens in the agent's core without its server."""
        response = self.link.core.command(command)
        assert response["type"] != "chatCmdError", response

    def commands(self, prefix: str) -> list[str]:
        """The commands of the agent that begin so."""
        return [command for command in self.sent if command.startswith(prefix)]

    def left(self) -> list[str]:
        """Every file in the folders of files, without those to be sent."""
        paths = (path.relative_to(self.folders.data) for path in self.folders.data.rglob("*") if path.is_file())
        return sorted(str(path) for path in paths if path.parts[0] != "tmp")


@contextmanager
def quickly() -> Iterator[None]:
    """While nothing works in a thread, time need not wait for it."""
    clock = current_clock()
    assert isinstance(clock, MockClock)
    clock.autojump_threshold = 0.0
    try:
        yield
    finally:
        clock.autojump_threshold = IDLE


class _Heard:
    """A link that keeps the commands."""

    def __init__(self, link: SandboxLink, sent: list[str]) -> None:
        self._link, self._sent = link, sent
        self.events = link.events

    async def send(self, command: str) -> dict[str, Any]:
        self._sent.append(command)
        return await self._link.send(command)

    @property
    def down_since(self) -> float | None:
        return self._link.down_since


@asynccontextmanager
async def open_scene(folder: Path, *, group: bool = False) -> AsyncIterator[Scene]:
    """The scene with everybody connected."""
    async with open_sandbox(None, "agent", population=False) as link, trio.open_nursery() as nursery:
        scene = Scene(link, folder, nursery)
        await scene.api.create_user("My Agent")
        (folder / "DATA" / "tmp").mkdir(parents=True)
        await scene.api.set_temp_folder(str(folder / "DATA" / "tmp"))
        await scene.api.start()
        scene.bob = Person(scene.network, "Bob")
        with quickly():
            await (_meet_in_group if group else _meet)(scene)
        await scene.run()
        nursery.start_soon(scene.pump)
        await trio.sleep(1)
        yield scene
        nursery.cancel_scope.cancel()


async def _meet(scene: Scene) -> None:
    link = scene.bob.do("/_connect 1")["connLinkInvitation"]
    await scene.api.connect_link(link, False)
    await trio.sleep(20)
    (contact,) = await scene.api.list_contacts()
    found = chat_of({"type": "direct", "contact": contact})
    assert found is not None
    scene.chat = found
    (agent,) = scene.bob.do("/_contacts 1")["contacts"]
    scene.to_agent = f"@{agent['contactId']}"


async def _meet_in_group(scene: Scene) -> None:
    plan = await scene.api.connect_plan(scene.bob.group("Trail"))
    data = plan["connectionPlan"]["groupLinkPlan"]["groupSLinkData_"]
    prepared = await scene.api.prepare_group(plan["connLink"], data)
    number = prepared["chatInfo"]["groupInfo"]["groupId"]
    await scene.api.connect_group(number, None)
    await trio.sleep(20)
    read = await scene.api.get_chat(f"#{number}", count(0))
    found = chat_of(read["chatInfo"])
    assert found is not None
    scene.chat, scene.to_agent = found, "#1"
