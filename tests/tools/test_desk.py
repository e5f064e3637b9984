"""The desk: what the listener is told of the tools, and what it gets for odd calls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from simplexmcp.errors import CoreError, Refused
from tests.fakes import Call
from tests.tools.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from simplexmcp.tooling import ToolResult


async def test_the_tools_are_described_in_an_order_that_stays(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.running():
        infos = world.tools.describe()
        assert [info.name for info in infos] == ["connect", "send", "receive", "list", "history", "download", "leave"]
        assert {info.name for info in infos if info.hints.read_only} == {"list", "history"}
        assert {info.name for info in infos if info.hints.destructive} == {"leave"}
        assert all(info.meta == {} for info in infos)
        assert all(len(info.description) < 2000 for info in infos)
        json.dumps([info.schema for info in infos])


async def test_in_mode_host_the_actions_ask_the_hosts_user(tmp_path: Path) -> None:
    world = World(tmp_path, mode="host")
    async with world.running():
        asking = {info.name for info in world.tools.describe() if info.meta}
        assert asking == {"connect", "send", "download", "leave"}
        assert {tuple(info.meta.items()) for info in world.tools.describe() if info.meta} == {
            (("anthropic/requiresUserInteraction", True),)
        }


async def test_an_unknown_tool_and_unknown_arguments_are_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.running():
        result = await world.tools.call("shell\n", {}, Call())
        assert result.is_error
        assert result.content["error"].startswith(r"There is no tool 'shell\n'; the tools are connect, send")
        assert (await world.use("list", all=True))["error"] == "`all` is not an argument of list."


async def test_an_error_of_the_core_is_a_result(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.running():
        world.core.fail["/_get chats"] = CoreError("errorStore/dBBusyError", "errorStore/dBBusyError: busy")
        result = await world.call("list")
        assert result.is_error
        assert result.content == {"error": "The SimpleX core refused: errorStore/dBBusyError: busy."}


async def test_a_refusal_shows_what_is_hidden_in_a_name(tmp_path: Path) -> None:
    world = World(tmp_path)

    async def refuse(*_: Any) -> ToolResult:
        raise Refused("group \u202eTrail\n\ud800 (#15) is gone.")

    async with world.running():
        world.tools._tools["list"] = (world.tools._tools["list"][0], refuse)
        assert (await world.use("list"))["error"] == "group <U+202E>Trail<U+000A><U+D800> (#15) is gone."


async def test_other_profiles_of_the_core_are_not_watched(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.running():
        assert world.watch.user_id == 1
