"""Flow 5: `receive` with `wait`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from tests.e2e.test_flow_04_send import join_trail
from tests.e2e.world import open_world

if TYPE_CHECKING:
    from pathlib import Path


async def test_flow_5_a_waiting_receive_gives_the_message_when_it_comes(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Bob") as bob:
        group, chat = await join_trail(flow, bob)
        await flow.agent.call("receive", chat=chat)
        for where in (chat, None):
            result: dict[str, object] = {}

            async def call(result: dict[str, object] = result, where: str | None = where) -> None:
                arguments = {"chat": where} if where else {}
                result.update(await flow.agent.call("receive", wait=3600, limit=50, **arguments))

            flow.agent.said.clear()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(call)
                await trio.sleep(2)
                assert result == {}
                await bob.say(group, "the bridge is open")
            assert result["chat"] == chat
            assert result["more"] == 0
            assert [message["text"] for message in result["messages"]] == ["the bridge is open"]  # type: ignore[attr-defined]
            assert flow.agent.said[0].startswith(f"No new messages in {where or 'any chat'}; waiting until ")


async def test_flow_5_unread_messages_are_given_once_oldest_first_with_the_rest_counted(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Bob") as bob:
        group, chat = await join_trail(flow, bob)
        await flow.agent.call("receive", chat=chat)
        for n in range(7):
            await bob.say(group, f"message {n}")
        await bob.see(group, "message 6")
        await trio.sleep(2)
        first = await flow.agent.call("receive", chat=chat, limit=3)
        rest = await flow.agent.call("receive", chat=chat, limit=100)
        assert ([m["text"] for m in first["messages"]], first["more"]) == ([f"message {n}" for n in range(3)], 4)
        assert ([m["text"] for m in rest["messages"]], rest["more"]) == ([f"message {n}" for n in range(3, 7)], 0)
        assert (await flow.agent.call("receive", chat=chat))["messages"] == []
        history = await flow.agent.call("history", chat=chat, limit=3)
        assert [m["text"] for m in history["messages"]] == [f"message {n}" for n in range(4, 7)]
