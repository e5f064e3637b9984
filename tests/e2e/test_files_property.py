"""The approval property for files: whatever is asked and said in whatever order, each file that the core fetches, and
each one that the agent sends, has one owner's word of its own, or an approval of files in force (case S33).
"""

from __future__ import annotations

import json
import random
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from tests.e2e.filing import filing
from tests.e2e.robust import told
from tests.effort import effort

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.filing import Filing

FILES = 4
STEPS = 80
SETTLE = 4.0


class Books:
    """What an honest observer would allow: `fetch` by item, `send` by file name."""

    def __init__(self, scene: Filing, items: list[int], commands: list[str]) -> None:
        self._scene, self._items, self._commands = scene, items, commands
        self.granted = False
        self._fetch: list[int] = []
        self._send: list[str] = []
        self._rejected: set[int] = set()
        self._here: set[int] = set()
        self.seen = {"fetch": 0, "send": 0, "granted": 0}

    async def pending(self) -> dict[int, dict[str, Any]]:
        """The actions that wait, as the agent sees them."""
        actions = (await self._scene.agent.call("list"))["actions"]
        return {action["action"]: action for action in actions if action["state"] == "pending"}

    async def asked(self, item: int) -> None:
        """The agent asks for a file: an approval of files carries it, unless an owner rejected it."""
        waiting = [action["input"].get("item") for action in (await self.pending()).values()]
        if self.granted and item not in self._rejected and item not in waiting:
            self._fetch.append(item)
            self.seen["granted"] += 1

    async def said(self, words: str) -> None:
        """An owner says something: what it allows now."""
        verb, *rest = words.split(" ")
        number = int(rest[1]) if len(rest) > 1 and rest[1].isdigit() else 0
        action = (await self.pending()).get(number)
        tool, given = (action["tool"], action["input"]) if action else ("", {})
        if verb == "receive" and rest[1] == "off":
            self.granted = False
        elif verb in ("receive", "forward") and tool == "download":
            self._fetch.append(given["item"])
            self.granted = self.granted or rest[-1] == "all"
        elif verb == "approve" and tool == "send":
            self._send.append(Path(given["file"]).name)
        elif verb == "reject" and tool == "download":
            self._rejected.add(given["item"])

    def check(self) -> None:
        """Every command since the last look had its word."""
        for command in self._commands:
            if command.startswith("/freceive "):
                item = self._items[int(command.split(" ")[1]) - 1]
                assert item in self._fetch, command
                assert item not in self._here, command
                self._here.add(item)
                self.seen["fetch"] += 1
            elif command.startswith(f"/_send {self._scene.chat} "):
                composed = json.loads(command.partition(" json ")[2])
                for name in (Path(one["fileSource"]["filePath"]).name for one in composed if "fileSource" in one):
                    assert name in self._send, command
                    self._send.remove(name)
                    self.seen["send"] += 1
        self._commands.clear()


def a_word(chance: random.Random, chat: str, waiting: list[int]) -> str:
    """What an owner may say, mostly of what waits."""
    number = chance.choice([*waiting, *waiting, 2, 3])
    forms = (f"receive {chat} {number}", f"receive {chat} {number} all", f"receive {chat} off",
             f"forward {chat} {number}", f"reject {chat} {number}", f"approve {chat} {number}",
             f"approve {chat} all", f"revoke {chat}", f"receive #99 {number}")  # fmt: skip
    return chance.choices(forms, (4, 2, 2, 2, 4, 5, 3, 1, 1))[0]


@pytest.mark.parametrize("seed", range(effort(3, 12)))
async def test_s33_no_file_comes_or_goes_without_a_word_for_it(
    tmp_path: Path, record_property: Callable[[str, int], None], seed: int
) -> None:
    record_property("inputs", 1)
    chance = random.Random(seed)
    async with filing(tmp_path) as scene:
        items = [await scene.offered(scene.file(f"{n}.pdf", bytes([n]) * 500), f"file {n}") for n in range(FILES)]
        own = [scene.file(f"own-{n}.pdf", b"own") for n in range(FILES)]
        books = Books(scene, items, told(scene.world))
        async with trio.open_nursery() as calls:
            for _ in range(STEPS):
                kind = chance.choices(("download", "send", "say"), (3, 2, 5))[0]
                if kind == "download":
                    item = chance.choice(items)
                    await books.asked(item)
                    calls.start_soon(partial(scene.agent.call, "download", chat=scene.chat, item=item, wait=0))
                elif kind == "send":
                    given = {"text": chance.choice(("", "look")), "file": str(chance.choice(own))}
                    calls.start_soon(partial(scene.agent.call, "send", chat=scene.chat, **given))
                else:
                    words = a_word(chance, scene.chat, [*await books.pending()])
                    await books.said(words)
                    await scene.tap(words)
                await trio.sleep(SETTLE)
                books.check()
            calls.cancel_scope.cancel()
        await trio.sleep(SETTLE)
        books.check()
        assert books.seen["fetch"] + books.seen["send"] > 0
