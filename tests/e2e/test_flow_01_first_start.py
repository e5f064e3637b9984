"""Flow 1: first start, and the owner joins."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.e2e.world import open_world

if TYPE_CHECKING:
    from pathlib import Path


async def test_flow_1_the_first_start_makes_the_chat_prints_the_link_and_the_first_person_is_the_owner(
    tmp_path: Path,
) -> None:
    async with open_world(tmp_path) as world:
        server = await world.serve()
        lines = server.lines.all
        assert lines[0].startswith("simplexmcp ")
        assert 'Agent control chat "My Agent" created.' in lines
        assert lines[-1] == f"Listening on http://127.0.0.1:{server.port}/mcp"
        async with world.person("Alice") as alice:
            ref = await world.owner(server, alice)
            assert await server.lines.see("Alice joined") == (
                "Alice joined (member 2) and is now an owner. The link is deleted."
            )
            assert lines[-1] == "Add the agent to Claude Code: simplexmcp register my-agent"
            assert await alice.see(ref, "I'm your agent") == (
                "I'm your agent. I ask here before I connect, send, download a file or leave a chat."
            )
            info = json.loads((server.options.data / "server.json").read_text())
            assert (info["url"], info["expireHours"]) == (server.url, 23)
            async with server.agent() as agent:
                assert (await agent.call("list")) == {"agent": "My Agent", "chats": [], "actions": []}
        await server.end()
