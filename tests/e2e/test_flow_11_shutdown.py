"""Flow 11: shutdown with pending actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from tests.e2e.test_flow_04_send import join_trail
from tests.e2e.world import open_world

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.world import Agent


async def test_flow_11_a_stop_ends_every_call_with_a_result_and_tells_the_owner(tmp_path: Path) -> None:
    async with (
        open_world(tmp_path) as world,
        world.flow() as flow,
        world.person("Bob") as bob,
        world.person("Carol") as carol,
    ):
        _, chat = await join_trail(flow, bob)
        lonely = (await carol.api.link.send(f"/_address {carol.api.user_id}"))["connLinkContact"]["connShortLink"]
        results: dict[str, dict[str, object]] = {}

        async def call(agent: Agent, tool: str, **arguments: object) -> None:
            results[tool] = await agent.call(tool, **arguments)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: call(flow.agent, "send", chat=chat, text="hello"))
            await flow.card("I want to send")
            nursery.start_soon(lambda: call(flow.agent, "connect", target=lonely, wait=80_000))
            await flow.card("I want to connect to contact Carol")
            nursery.start_soon(lambda: call(flow.agent, "receive", wait=80_000))
            await flow.tap("approve 3")
            await carol.wait(lambda e: e["type"] == "receivedContactRequest")
            flow.server.stop.asked.set()
        assert (results["send"]["status"], results["connect"]["status"]) == ("cancelled", "interrupted")
        assert results["receive"]["messages"] == []
        await flow.server.ended.wait()
        lines = flow.server.lines.all
        assert "Cancelled 2 actions." in lines
        assert "Stopping: sending 2 cancelled cards, up to 10 s. Ctrl-C to stop now." in lines
        assert (await flow.card("Cancelled: the server stopped.")).startswith("I want to send a message")
        assert (await flow.card("interrupted")).endswith("\nApproved by Alice; interrupted: the server stopped.")


async def test_flow_11_the_next_start_goes_on_counting_and_knows_no_old_number(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.person("Bob") as bob:
        async with world.flow() as flow:
            _, chat = await join_trail(flow, bob)
            async with flow.server.agent() as lost, trio.open_nursery() as nursery:
                nursery.start_soon(lambda: lost.call("send", chat=chat, text="hello"))
                await flow.card("I want to send")
                nursery.cancel_scope.cancel()
        server = await world.serve()
        assert any(line == "Owners: 2:Alice." for line in server.lines.all)
        async with world.person("Alice") as alice, server.agent() as agent:
            await alice.say(flow.ref, "/approve 2")
            assert await alice.see(flow.ref, "Action 2 is") == "Action 2 is not pending."
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: agent.call("send", chat=chat, text="again"))
                await alice.see(flow.ref, f"/'approve {chat} 3'")
                await alice.say(flow.ref, "/reject 3")
        await server.end()
        assert "hello" not in await bob.texts("#1")


async def test_flow_11_no_task_is_left_after_a_stop(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        before = set(world.nursery.child_tasks)
        async with world.flow():
            assert len(world.nursery.child_tasks) > len(before)
        await trio.sleep(1)
        assert set(world.nursery.child_tasks) == before
