"""Flow 3: `connect` with approval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from tests.e2e.world import open_world

if TYPE_CHECKING:
    from pathlib import Path


async def test_flow_3_a_connect_is_asked_approved_and_gives_the_first_messages(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Helper", bot=True) as helper:
        address = await helper.make_address(greeting="Welcome to Helper.")
        result = await flow.result_of(
            "connect", "I want to connect to bot Helper", "approve 1", target=address, wait=30, idle=1
        )
        assert result["status"] == "done"
        assert (result["action"], result["decided_by"], result["connected"]) == (1, "Alice", True)
        assert (result["name"], result["kind"]) == ("Helper", "bot")
        assert [message["text"] for message in result["messages"]] == ["Welcome to Helper."]
        card = await flow.card("I connected to bot Helper")
        assert card.endswith(", as myself.\nApproved by Alice.")
        assert flow.agent.said[0].startswith("Action 1 waits for an approver until ")

        known = await flow.agent.call("connect", target=address)
        assert (known["status"], known["chat"]) == ("known", result["chat"])
        assert "action" not in known


async def test_flow_3_a_rejected_connect_makes_no_chat(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Helper", bot=True) as helper:
        address = await helper.make_address()
        result = await flow.result_of("connect", "I want to connect", "reject 1", target=address)
        assert result["status"] == "rejected"
        assert (await flow.agent.call("list"))["chats"] == []
        assert (await flow.card("Rejected by Alice.")).startswith("I want to connect to bot Helper")
        assert not any(event["type"] == "acceptingContactRequest" for event in helper.events)


async def test_flow_3_a_group_is_joined_by_its_link(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Bob") as bob:
        group, link = await bob.make_group("Trail")
        await bob.say(group, "the bridge is closed")
        result = await flow.result_of(
            "connect", "I want to connect to group Trail", "approve 1", target=link, wait=30, idle=1
        )
        assert (result["status"], result["kind"], result["connected"]) == ("done", "group", True)
        assert "the bridge is closed" in [message["text"] for message in result["messages"]]


async def test_flow_3_a_request_that_nobody_answers_ends_as_not_connected(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow, world.person("Carol") as carol:
        pair = (await carol.api.link.send(f"/_address {carol.api.user_id}"))["connLinkContact"]
        result = await flow.result_of(
            "connect", "I want to connect to contact Carol", "approve 1", target=pair["connShortLink"], wait=3, idle=1
        )
        assert (result["status"], result["connected"]) == ("done", False)
        assert any(said.startswith("Action 1 waits for the connection until ") for said in flow.agent.said)
        assert (await flow.card("I sent a request to connect")).endswith("Approved by Alice.")


async def test_flow_3_what_is_no_simplex_link_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, world.flow() as flow:
        for target in ("javascript:alert(1)", "https://example.com/", "hello", "", "simplex:/", "@nobody.simplex x"):
            assert "error" in await flow.agent.call("connect", target=target)
        with trio.move_on_after(2):
            await flow.card("I want")
            raise AssertionError
