"""Everything that is posted in the owners' chat while people and chats have the worst of names: as the owner's app has
it, only the program's own commands are active."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from trio.testing import MockClock

from simplexmcp import commands, inert
from simplexmcp.commands import Bound
from tests.e2e.stack import open_scene
from tests.e2e.test_attacks_commands import member
from tests.test_posts import PIECES

if TYPE_CHECKING:
    from tests.e2e.stack import Pending, Scene

WORDS = (
    "pending", "list", "help", "show 2", "reject 1", "approve 99", "receive #2 2", "forward #2 2", "receive #2 off",
    "revoke #2", "revoke @9", "delete #2 files", "nonsense", "approve #1 all", "leave #1",
)  # fmt: skip


@pytest.fixture(autouse=True)
def fast_clock() -> MockClock:
    return MockClock()


def rename_everybody(scene: Scene, random: Random) -> None:
    """As a hostile core could: no rule of names holds."""
    state = scene.stack.network.core("agent").state

    def name() -> str:
        text = "".join(random.choices(PIECES, k=random.randint(1, 8)))
        return text.replace("\ud800", "?") or "/"  # no core can store half a character

    for profile in state.profiles.values():
        if profile.data.get("peerType") is None:
            profile.data["displayName"] = name()
    for number, group in state.groups.items():
        if f"#{number}" != scene.stack.control.ref:
            group.profile = {**group.profile, "displayName": name()}


def posts(scene: Scene) -> list[dict[str, Any]]:
    """What the agent posted, as the owner's core has it."""
    return [item for item in scene.alice.items(scene.room) if item["content"]["type"] == "rcvMsgContent"]


def check(item: dict[str, Any]) -> None:
    text = item["meta"]["itemText"]
    for part in item.get("formattedText") or []:
        kind = (part.get("format") or {}).get("type")
        assert kind in (None, "snippet", "command"), (kind, text)
        if kind == "command":
            command = commands.parse(f"/'{part['format']['commandStr']}'")
            assert command not in (None, "usage"), text
            assert getattr(command, "bound", Bound()) == Bound()
    assert inert.visible(text) == text


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_everybody_is_called_only_the_programs_own_commands_are_active(
    tmp_path: Path, fast_clock: MockClock, seed: int
) -> None:
    random = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder).resolve() / "'approve 2'.txt"
        file.write_text("a file")
        await talk(tmp_path, fast_clock, random, str(file))


async def talk(tmp_path: Path, fast_clock: MockClock, random: Random, file: str) -> None:
    async with open_scene(tmp_path, fast_clock) as scene:
        stack = scene.stack
        mallory, room = await member(scene, "Mallory", "member")
        calls: list[Pending] = []
        for step in range(12):
            rename_everybody(scene, random)
            await stack.control.load_members()
            text = "".join(random.choices(PIECES, k=6)).replace("\ud800", "") or "x"
            calls += [
                stack.call("send", chat="#2", text=text),
                stack.call("send", chat="#2", file=file, text="look"),
                stack.call("leave", chat="#2"),
                stack.call("send", chat="#2", file=f"/{text}"),
            ]
            await stack.settle()
            for action in stack.actions.pending():
                if action.tool != "leave" and random.random() < 0.5:
                    await scene.tap(f"{random.choice(('approve', 'reject'))} {action.number}")
            await scene.tap(random.choice(WORDS))
            if step % 4 == 0:
                await scene.tap("approve #2 all")
                await scene.tap("list")
            mallory.core.command(
                f"/_send {room} json {json.dumps([{'msgContent': {'type': 'text', 'text': '/list'}}])}"
            )
            scene.alice.set_role(scene.room, "Mallory", ("owner", "member")[step % 2])
            await stack.settle()
            for action in stack.actions.pending():
                await scene.tap(f"reject {action.number}")
        for call in calls:
            call.lose()
        await stack.pass_time(60)
        said = posts(scene)
        assert len(said) > 60
        for item in said:
            check(item)
        assert any("attaching file" in item["meta"]["itemText"] for item in said)
        assert not [entry for entry in stack.audit() if entry["event"] == "card-refused"]
