"""Flow 9: expiry, on a clock that jumps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock

from tests.e2e.test_flow_04_send import join_trail
from tests.e2e.world import open_world

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def fast_clock() -> MockClock:
    return MockClock(rate=10.0)


async def test_flow_9_an_action_expires_tells_the_agent_and_the_owner(tmp_path: Path, fast_clock: MockClock) -> None:
    async with open_world(tmp_path) as world, world.flow(expire_hours=1) as flow, world.person("Bob") as bob:
        _, chat = await join_trail(flow, bob)
        result: dict[str, object] = {}

        async def call() -> None:
            result.update(await flow.agent.call("send", chat=chat, text="hello"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await flow.card("I want to send")
            fast_clock.jump(31 * 60)
            await flow.card("Action 2 expires at ")
            fast_clock.jump(29 * 60)
            assert (await flow.card("Expired.")).startswith("I want to send a message to group Trail")
        assert (result["status"], result["action"]) == ("expired", 2)
        await flow.tap("approve 2")
        assert (await flow.card("Action 2 expired at")).startswith("Action 2 expired at ")
