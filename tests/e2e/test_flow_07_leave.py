"""Flow 7: `leave`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.e2e.test_flow_04_send import join_trail
from tests.e2e.world import open_world

if TYPE_CHECKING:
    from pathlib import Path


async def test_flow_7_a_group_is_left_and_deleted_after_approval(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Bob") as bob:
        _, chat = await join_trail(flow, bob)
        result = await flow.result_of("leave", "I want to leave", f"approve {chat} 2", chat=chat)
        assert result == {"action": 2, "status": "done", "chat": chat, "decided_by": "Alice"}
        assert await flow.card("I left group Trail") == f"I left group Trail ({chat}).\nApproved by Alice."
        assert (await flow.agent.call("list"))["chats"] == []
        assert await bob.wait(lambda e: e["type"] == "leftMember")


async def test_flow_7_a_contact_is_deleted_and_told(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Helper", bot=True) as helper:
        address = await helper.make_address()
        chat = (await flow.result_of("connect", "I want to connect", "approve 1", target=address, wait=20))["chat"]
        result = await flow.result_of("leave", "I want to delete", f"approve {chat} 2", chat=chat)
        assert result["status"] == "done"
        assert await flow.card("I deleted bot Helper") == f"I deleted bot Helper ({chat}).\nApproved by Alice."
        assert await helper.wait(lambda e: e["type"] == "contactDeletedByContact")


async def test_flow_7_the_owner_leaves_a_chat_at_once_and_its_pending_actions_end(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Bob") as bob:
        _, chat = await join_trail(flow, bob)
        result = await flow.result_of("send", "I want to send", f"leave {chat}", chat=chat, text="too late")
        assert result["status"] in ("rejected", "failed")
        assert await flow.card("requested by Alice") == f"Left group Trail ({chat}), requested by Alice."
        assert await flow.server.lines.see("Left group") == f"Left group Trail ({chat}), requested by Alice."
        assert await bob.wait(lambda e: e["type"] == "leftMember")
        assert "error" in await flow.agent.call("send", chat=chat, text="hello")
