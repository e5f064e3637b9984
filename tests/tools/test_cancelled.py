"""Calls that only read, and a `receive` that waits, cancelled at each await: nothing is marked, lost or doubled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.tools.world import World, contact

if TYPE_CHECKING:
    from pathlib import Path


def texts(content: dict) -> list[str]:
    return [message["text"] for message in content["messages"]]


@pytest.mark.parametrize(("tool", "arguments"), [("list", {}), ("history", {"chat": "@4"})])
async def test_a_reading_call_that_is_cancelled_at_any_await_changes_nothing(
    tmp_path: Path, tool: str, arguments: dict
) -> None:
    for step in range(1, 40):
        (tmp_path / str(step)).mkdir()
        world = World(tmp_path / str(step))
        async with world.running():
            world.core.arrive(world.core.add(contact(4)), "one", "two")
            cut = await world.cancelled_after(step, tool, **arguments)
            assert world.core.did("/_read") == world.core.did("/_send") == []
            assert texts(await world.use("receive", chat="@4")) == ["one", "two"]
            if cut.content is not None:
                return
    raise AssertionError("the call never ended")


@pytest.mark.parametrize("target", [{"chat": "@4"}, {}])
async def test_a_waiting_receive_that_is_cancelled_at_any_await_loses_and_doubles_nothing(
    tmp_path: Path, target: dict, autojump_clock: trio.testing.MockClock
) -> None:
    for step in range(1, 60):
        (tmp_path / str(step)).mkdir()
        world = World(tmp_path / str(step))
        async with world.running():
            ref = world.core.add(contact(4))

            async def speak(world: World = world, ref: str = ref) -> None:
                await wait_all_tasks_blocked(0.01)
                world.core.arrive(ref, "one")

            world.nursery.start_soon(speak)
            cut = await world.cancelled_after(step, "receive", wait=60, **target)
            await trio.sleep(1)
            seen = texts(cut.content) if cut.content else []
            seen += texts(await world.use("receive", chat="@4"))
            assert seen == ["one"]
            if cut.content is not None:
                return
    raise AssertionError("the call never ended")
