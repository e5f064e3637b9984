"""Flow 10: a lost call and its re-attachment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from tests.e2e.test_flow_04_send import join_trail
from tests.e2e.world import open_world

if TYPE_CHECKING:
    from pathlib import Path


async def test_flow_10_a_lost_call_leaves_its_action_and_the_same_call_gets_its_result(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Bob") as bob:
        group, chat = await join_trail(flow, bob)
        async with flow.server.agent() as lost, trio.open_nursery() as nursery:
            nursery.start_soon(lambda: lost.call("send", chat=chat, text="t"))
            await flow.card("I want to send")
            nursery.cancel_scope.cancel()
        await trio.sleep(1)
        actions = (await flow.agent.call("list"))["actions"]
        assert [(a["action"], a["tool"], a["input"], a["state"], a["open"]) for a in actions] == [
            (2, "send", {"chat": chat, "text": "t"}, "pending", False)
        ]
        await flow.tap(f"approve {chat} 2")
        await flow.card("I sent a message")
        await bob.see(group, "t")
        await bob.say(group, "an answer that nobody waited for")
        await trio.sleep(1)
        result = await flow.agent.call("send", chat=chat, text="t", wait=5, idle=1)
        assert (result["action"], result["status"]) == (2, "done")
        assert [m["text"] for m in result["responses"]] == ["an answer that nobody waited for"]
        assert (await flow.agent.call("list"))["actions"] == []
        assert (await bob.texts(group)).count("t") == 1


async def test_flow_10_two_equal_calls_at_once_are_one_message_and_one_result(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Bob") as bob:
        group, chat = await join_trail(flow, bob)
        results: list[dict[str, object]] = []

        async def call() -> None:
            async with flow.server.agent() as agent:
                results.append(await agent.call("send", chat=chat, text="once"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            nursery.start_soon(call)
            await flow.card("I want to send")
            await trio.sleep(5)
            await flow.tap("approve 2")
        assert [result["status"] for result in results] == ["done", "done"]
        assert results[0]["item"] == results[1]["item"]
        await bob.see(group, "once")
        assert (await bob.texts(group)).count("once") == 1
        assert sum("`once`" in text for text in await flow.alice.texts(flow.ref)) == 1
