"""Flow 12: `--owners` setup."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from simplexmcp.errors import UserError
from tests.e2e.world import open_world

if TYPE_CHECKING:
    from pathlib import Path


async def test_flow_12_the_list_is_printed_then_obeyed(tmp_path: Path) -> None:
    async with (
        open_world(tmp_path) as world,
        world.person("Alice") as alice,
        world.person("Helper", bot=True) as helper,
    ):
        server = await world.serve(owners="")
        assert "The link adds an observer. Its ID and name are printed when it joins." in server.lines.all
        ref = await alice.join(await server.link())
        line = "Alice joined (member 2). Restart the server with --owners 2:Alice"
        assert await server.lines.see("Alice joined") == line
        assert await alice.see(ref, "Alice joined") == (
            "Alice joined (member 2). Restart the server with `--owners 2:Alice`"
        )
        address = await helper.make_address()
        async with server.agent() as agent:
            assert (await agent.call("connect", target=address))["error"].startswith(
                "The agent has no approving owner. "
            )
        await server.end()

        server = await world.serve(owners="2:Alice")
        assert "Owners: 2:Alice." in server.lines.all
        assert server.lines.all[-2] == "Add the agent to Claude Code: simplexmcp register my-agent"
        async with server.agent() as agent, trio.open_nursery() as nursery:
            nursery.start_soon(lambda: agent.call("connect", target=address, wait=10))
            await alice.see(ref, "I want to connect")
            await alice.say(ref, "/approve 1")
            await alice.see(ref, "I connected")
        await server.end()


async def test_flow_12_an_owner_outside_the_list_cannot_approve_and_is_told(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.person("Alice") as alice, world.person("Bob") as bob:
        server = await world.serve(owners="")
        ref = await alice.join(await server.link())
        await server.lines.see("Alice joined")
        await server.end()
        server = await world.serve(owners="2:Alice")
        await alice.wait(lambda e: e["type"] == "memberRole")
        link = (await alice.api.create_group_link(int(ref[1:]), "member"))["connLinkContact"]["connShortLink"]
        bob_ref = await bob.join(link)
        _, members = await alice.api.list_members(int(ref[1:]))
        bob_member = next(m["groupMemberId"] for m in members if m["memberProfile"]["displayName"] == "Bob")
        await alice.api.set_member_role(int(ref[1:]), bob_member, "owner")
        line = await server.lines.see("Bob (member 3)")
        assert line == (
            "Bob (member 3) is now an owner and can't approve actions yet. "
            "Restart the server with --owners 2:Alice,3:Bob"
        )
        assert "`--owners 2:Alice,3:Bob`" in await alice.see(ref, "Bob (member 3)")
        await bob.say(bob_ref, "/approve 1")
        assert await bob.see(bob_ref, "Only the owners") == "Only the owners listed in --owners approve actions."
        await server.end()


async def test_flow_12_an_entry_that_matches_nobody_ends_the_start_with_code_2(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        server = await world.serve()
        async with world.person("Alice") as alice:
            await world.owner(server, alice)
        await server.end()
        with pytest.raises(BaseExceptionGroup) as raised:
            async with trio.open_nursery() as world.nursery:
                await world.serve(owners="2:Bob")
        error: BaseException = raised.value
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        assert isinstance(error, UserError)
        assert (error.code, "2:Alice" in str(error)) == (2, True)


async def test_flow_12_reset_owners_makes_a_new_chat_with_the_same_counter(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.person("Helper", bot=True) as helper:
        address = await helper.make_address()
        async with world.flow() as flow:
            await flow.result_of("connect", "I want to connect", "reject 1", target=address)
        async with world.flow(reset_owners=True) as flow:
            assert "The old agent control chat was deleted for all its members." in flow.server.lines.all
            result = await flow.result_of("connect", "/'approve 2'", "reject 2", target=address)
            assert result["action"] == 2


async def test_flow_12_an_owner_who_leaves_approves_no_more(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Helper", bot=True) as helper:
        address = await helper.make_address()
        await flow.alice.api.leave_group(int(flow.ref[1:]))
        assert await flow.server.lines.see("no longer an owner") == (
            "Alice (member 2) is no longer an owner. No owners remain: restart the server with --reset-owners"
        )
        refused = await flow.agent.call("connect", target=address)
        assert refused["error"].startswith("The agent has no approving owner.")


async def test_flow_12_a_list_without_a_control_chat_ends_the_start_and_makes_none(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        with pytest.raises(BaseExceptionGroup) as raised:
            async with trio.open_nursery() as world.nursery:
                await world.serve(owners="2:Bob")
        error: BaseException = raised.value
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        assert isinstance(error, UserError)
        assert (error.code, "start with --owners alone" in str(error)) == (2, True)
        server = None
        async with trio.open_nursery() as world.nursery:
            server = await world.serve()
            assert 'Agent control chat "My Agent" created.' in server.lines.all
            await server.end()
