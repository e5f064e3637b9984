"""Files in the flows: people who send and receive them, and their bytes."""

from __future__ import annotations

import hashlib
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import trio

from simplexmcp import messages
from simplexmcp.core.api import count
from tests.clocks import within
from tests.e2e.test_flow_04_send import join_trail
from tests.e2e.world import DEADLINE, Flow, Person, open_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

REPORT = b"%PDF-1.7\n" + bytes(range(256)) * 900
"""A file of 230,409 bytes."""


def picture(folder: Path, name: str = "trail.jpg", *, size: tuple[int, int] = (640, 480)) -> Path:
    """A JPEG with metadata."""
    from PIL import Image

    image = Image.effect_noise(size, 60).convert("RGB")
    exif = Image.Exif()
    exif[0x010F] = "Secret Camera"
    path = folder / name
    image.save(path, exif=exif)
    return path


async def give(person: Person, ref: str, path: Path, text: str = "", **content: Any) -> int:
    """Send a file as the apps do; the item there."""
    composed = {
        "msgContent": {"type": "file", "text": text, **content},
        "fileSource": {"filePath": str(path)},
    }
    entry = (await person.api.send_messages(ref, [composed]))[0]
    return int(entry["chatItem"]["meta"]["itemId"])


async def take(person: Person, ref: str, target: Path, needle: str = "") -> bytes:
    """Receive the newest file of a chat; its bytes."""
    file = await newest_file(person, ref, needle)
    await person.wait(lambda e: e["type"] == "rcvFileDescrReady" and e["rcvFileTransfer"]["fileId"] == file.file_id)
    await person.api.receive_file(file.file_id, str(target), approved_relays=True)
    await person.wait(
        lambda e: e["type"] == "rcvFileComplete" and e["chatItem"]["chatItem"]["file"]["fileId"] == file.file_id
    )
    return target.read_bytes()


async def newest_file(person: Person, ref: str, needle: str = "") -> messages.ChatFile:
    """The newest file of a chat that somebody sent there, as soon as there is one."""
    with within(DEADLINE):
        while True:
            changed = person.changed
            items = (await person.api.get_chat(ref, count(50)))["chatItems"]
            for item in reversed(items):
                file = messages.file_of(item)
                if file is not None and not file.own and needle in item["meta"]["itemText"]:
                    return file
            await changed.wait()


def _item(event: dict[str, Any]) -> int:
    return int(event["chatItem"]["chatItem"]["meta"]["itemId"])


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass
class Filing(Flow):
    """A flow with Bob's group Trail: `chat` for the agent, `group` for Bob."""

    bob: Person
    group: str
    chat: str
    sent: int = 0
    """The newest item that Bob sent a file with, on his side."""

    @property
    def data(self) -> Path:
        return self.world.folder / "data"

    def file(self, name: str = "report.pdf", content: bytes = REPORT) -> Path:
        """A file on the disk of this computer."""
        path = self.world.folder / "home" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return path

    async def offered(self, path: Path | None = None, text: str = "", *, upload: bool = True, **content: Any) -> int:
        """Bob sends a file to the group, and waits for its upload; the item as the agent has it."""
        sent = self.sent = await give(self.bob, self.group, path or self.file(), text, **content)
        if upload:
            await self.bob.wait(lambda e: e["type"] == "sndFileCompleteXFTP" and _item(e) == sent)
        return await self.newest_item(lambda item: "file" in item)

    async def newest_item(self, wanted: Callable[[dict[str, Any]], bool]) -> int:
        with within(DEADLINE):
            while True:
                shown = await self.agent.call("receive", chat=self.chat, wait=60)
                if "cannot be reached" in shown.get("error", ""):
                    await trio.sleep(0.2)
                    continue
                for item in reversed(shown["messages"]):
                    if wanted(item):
                        return int(item["item"])

    async def shown(self, item: int) -> dict[str, Any]:
        """An item as the agent reads it now."""
        found = (await self.agent.call("history", chat=self.chat, limit=100))["messages"]
        return next(entry for entry in found if entry["item"] == item)

    async def result_of_download(self, item: int) -> None:
        """A download whose result nobody looks at."""
        await self.agent.call("download", chat=self.chat, item=item)

    async def posted_file(self) -> messages.ChatFile:
        """The newest file in the control chat, as the owner has it."""
        return await newest_file(self.alice, self.ref)

    async def in_the_middle(self, item: int, do: Callable[[], Awaitable[Any]]) -> dict[str, Any]:
        """A download during which something happens; its result."""
        result: dict[str, Any] = {}

        async def call() -> None:
            result.update(
                await self.result_of(
                    "download", "I want to download", f"receive {self.chat} 2", chat=self.chat, item=item, wait=600
                )
            )

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            with within(DEADLINE):
                while (await self.shown(item))["file"]["state"] != "receiving":
                    await trio.sleep(0.5)
            await do()
        return result

    def left_behind(self) -> list[str]:
        """Every file in the folders of files."""
        roots = (self.data / "files", self.data / "forwarded")
        return sorted(str(p.relative_to(self.data)) for root in roots for p in root.rglob("*") if not p.is_dir())


@asynccontextmanager
async def filing(folder: Path, **options: Any) -> AsyncIterator[Filing]:
    """A server with its owner Alice, and Bob's group Trail with the agent in it."""
    async with open_world(folder) as world, world.flow(**options) as flow, world.person("Bob") as bob:
        group, chat = await join_trail(flow, bob)
        yield Filing(world, flow.server, flow.alice, flow.ref, flow.agent, bob, group, chat)
