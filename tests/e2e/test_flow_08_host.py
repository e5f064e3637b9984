"""Flow 8: mode `host`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.e2e.world import open_world

if TYPE_CHECKING:
    from pathlib import Path


async def test_flow_8_the_host_asks_its_user_and_the_server_performs_and_tells(tmp_path: Path) -> None:
    async with (
        open_world(tmp_path) as world,
        world.flow(approve="host") as flow,
        world.person("Helper", bot=True) as helper,
    ):
        tools = {tool.name: tool for tool in (await flow.agent.client.list_tools()).tools}
        asking = {name for name, tool in tools.items() if (tool.meta or {}).get("anthropic/requiresUserInteraction")}
        assert asking == {"connect", "send", "download", "leave"}
        chat = (await flow.agent.call("connect", target=await helper.make_address(), wait=20))["chat"]
        await flow.tap(f"approve {chat} all")
        await flow.card("--approve host")
        result = await flow.agent.call("send", chat=chat, text="hello")
        assert result["status"] == "done"
        assert "decided_by" not in result
        assert await flow.card("`hello`") == (
            f"I sent a message to bot Helper ({chat}): `hello`\nPerformed without approval (mode host)."
        )
        assert "Action 2: performed without approval (mode host)." in flow.server.lines.all
        assert await flow.server.lines.see("Approval mode") == "Approval mode: host"


async def test_flow_8_without_an_owner_nothing_is_done_in_mode_host_either(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.person("Helper", bot=True) as helper:
        server = await world.serve(approve="host")
        async with server.agent() as agent:
            result = await agent.call("connect", target=await helper.make_address())
            assert result["error"].startswith("The agent has no approving owner.")
        await server.end()
