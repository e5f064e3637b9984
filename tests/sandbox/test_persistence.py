"""The state file: a network that comes back is the one that was written, and a bad file is refused in words."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING

import pytest

from simplexmcp.errors import UserError
from simplexmcp.sandbox import persistence
from tests.sandbox.world import World

if TYPE_CHECKING:
    from pathlib import Path


def _busy() -> World:
    """A network with all kinds of rows in it, and a message on its way."""
    world = World()
    agent, bob, carol = world.person("My Agent"), world.person("Bob"), world.person("Carol")
    link = world.group(agent, "Team", bob, carol, description="Welcome")
    world.connect(agent, bob)
    agent.do("/_address 1")
    agent.do("/_connect 1")
    agent.do("/_set custom #1", {"x": 1})
    bob.say("#1", "@'My Agent' look", mentions={"My Agent": bob.member_id("My Agent")})
    world.settle()
    agent.say("#1", "seen", quotedItemId=agent.item_id("#1", "@'My Agent' look"))
    liked = carol.item_id("#1", "@'My Agent' look")
    carol.do(f"/_reaction #1 {liked} on", {"type": "emoji", "emoji": "👍"})
    carol.do(f"/_connect plan 1 {link['connShortLink']}")
    world.settle()
    agent.say("@4", "on its way")
    return world


def _reopened(world: World, path: Path) -> World:
    persistence.save(world.network, path)
    again = World(network=persistence.load(path, lambda: again.now))
    again.now = world.now
    return again


def test_a_network_that_was_written_and_read_is_the_same(tmp_path: Path) -> None:
    world = _busy()
    again = _reopened(world, tmp_path / "net.json")
    assert persistence.dump(again.network) == persistence.dump(world.network)


def test_all_answers_are_the_same_after_a_restart(tmp_path: Path) -> None:
    world = _busy()
    again = _reopened(world, tmp_path / "net.json")
    before, after = world.stranger("my-agent"), again.stranger("my-agent")
    after.do("/_start")
    for command in (
        "/_groups 1",
        "/_members #1",
        "/_get chats 1 pcc=on count=20",
        "/_get chat #1 count=50",
        "/_get chat @4 initial=5",
        "/_show_address 1",
        "/_get link #1",
        "/_contacts 1",
    ):
        assert after.do(command) == before.do(command), command


def test_what_was_on_its_way_arrives_after_the_restart_and_the_chats_go_on(tmp_path: Path) -> None:
    again = _reopened(_busy(), tmp_path / "net.json")
    agent, bob = again.stranger("my-agent"), again.stranger("bob")
    bob.do("/_start")
    agent.do("/_start")
    again.settle()
    assert bob.texts("@4") == ["on its way"]
    bob.say("#1", "still here")
    again.settle()
    assert agent.texts("#1")[-1] == "still here"


def test_a_core_is_not_started_after_a_restart(tmp_path: Path) -> None:
    again = _reopened(_busy(), tmp_path / "net.json")
    assert again.stranger("my-agent").refused("/_groups 1") == {"type": "chatNotStarted"}


def test_the_file_is_for_its_owner_only_and_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    path.write_text("old")
    path.chmod(0o644)
    persistence.save(_busy().network, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["net.json"]
    assert json.loads(path.read_text())["format"] == 2


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "[]", "{}", '{"format":1}', '{"format":99}', '{"format":1,"seed":"a","serial":1,"cores":[{}]}'],
)
def test_a_file_of_another_kind_is_refused_with_its_name_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "net.json"
    path.write_text(text)
    with pytest.raises(UserError, match=r"net\.json"):
        persistence.load(path, lambda: 0.0)
    assert path.read_text() == text


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.json"
    persistence.save(_busy().network, path)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UserError, match="No space"):
        persistence.save(_busy().network, path)
    assert path.read_bytes() == before


def test_the_population_lives_on_after_a_restart(tmp_path: Path) -> None:
    world = World(population=True)
    again = _reopened(world, tmp_path / "net.json")
    assert again.network.directory() == world.network.directory()
    bob = again.person("Bob")
    again.join(bob, {"connShortLink": again.network.directory()["trail"]["short"]})
    assert "Mara" in bob.members()
    assert any(text.startswith("Welcome") for text in bob.texts("#1"))


def test_the_same_commands_give_the_same_network_twice() -> None:
    assert persistence.text_of(_busy().network) == persistence.text_of(_busy().network)
