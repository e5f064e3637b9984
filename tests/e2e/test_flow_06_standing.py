"""Flow 6: `send` under a standing approval, and `/revoke`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from tests.e2e.test_flow_04_send import join_trail
from tests.e2e.world import open_world

if TYPE_CHECKING:
    from pathlib import Path


async def test_flow_6_a_standing_approval_carries_later_sends_until_it_is_revoked(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Bob") as bob:
        group, chat = await join_trail(flow, bob)
        first = await flow.result_of("send", "I want to send a message", f"approve {chat} all", chat=chat, text="one")
        assert first["status"] == "done"
        assert await flow.card("Approved for group") == (
            f"Approved for group Trail ({chat}) by Alice. /'revoke {chat}'"
        )
        assert (await flow.card(f"I sent a message to group Trail ({chat}): `one`")).endswith("\nApproved by Alice.")
        second = await flow.agent.call("send", chat=chat, text="two")
        assert (second["status"], second["decided_by"]) == ("done", "Alice")
        assert await flow.card("`two`") == (
            f"I sent a message to group Trail ({chat}): `two`\nApproved for this chat by Alice. /'revoke {chat}'"
        )
        listed = (await flow.agent.call("list"))["chats"]
        assert next(c for c in listed if c["chat"] == chat)["approved"]
        await bob.see(group, "two")
        await flow.tap(f"revoke {chat}")
        assert await flow.card("need approval again") == f"Messages to group Trail ({chat}) need approval again."
        third = await flow.result_of(
            "send", "I want to send a message to group Trail", f"reject {chat} 4", chat=chat, text="three"
        )
        assert third["status"] == "rejected"
        assert "three" not in await bob.texts(group)


async def test_flow_6_a_standing_approval_survives_a_restart_and_covers_no_leave(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.person("Bob") as bob:
        async with world.flow() as flow:
            _, chat = await join_trail(flow, bob)
            await flow.tap(f"approve {chat} all")
            await flow.card("Approved for group")
        server = await world.serve()
        async with world.person("Alice"), server.agent() as agent:
            assert (await agent.call("send", chat=chat, text="after the restart"))["status"] == "done"
            with trio.move_on_after(3) as scope:
                await agent.call("leave", chat=chat)
            assert scope.cancelled_caught
            actions = (await agent.call("list"))["actions"]
            assert [(a["tool"], a["state"]) for a in actions] == [("leave", "pending")]
        await server.end()


async def test_flow_6_a_bounded_approval_ends_with_its_messages_and_says_so(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Bob") as bob:
        _, chat = await join_trail(flow, bob)
        await flow.tap(f"approve {chat} all 1")
        assert "for 1 message." in await flow.card("Approved for group")
        assert (await flow.agent.call("send", chat=chat, text="one"))["status"] == "done"
        await flow.card("was used up: they need approval again.")
        result = await flow.result_of("send", "`two`", f"reject {chat} 3", chat=chat, text="two")
        assert result["status"] == "rejected"
