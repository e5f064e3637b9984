"""`list` and `history`: what they show, and that they change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from simplexmcp.standing import Grant, with_grant
from tests.fakes import ALICE, BOB
from tests.tools.world import World, contact, group, item

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_list_shows_chats_with_their_state_and_not_the_control_chat(world: World) -> None:
    async with world.running():
        world.core.add(group(1, "My Agent", customData={"simplexMcp": {"control": True}}))
        world.core.arrive(world.core.add(contact(4)), "one", "two")
        world.core.add(contact(5, "Carol", bot=False, status=None, preparedContact={"uiConnLinkType": "con"}))
        world.core.add(
            contact(2, "SimpleX Status", status=None, profile={"displayName": "S", "contactLink": "simplex:/"})
        )
        world.core.add(
            group(
                9,
                "News",
                status="left",
                useRelays=True,
                groupProfile={"displayName": "News", "publicGroup": {"groupType": "channel"}},
            )
        )
        assert await world.use("list") == {
            "agent": "My Agent",
            "chats": [
                {"chat": "@4", "name": "Helper", "kind": "bot", "unread": 2, "state": "connected"},
                {"chat": "@5", "name": "Carol", "kind": "contact", "unread": 0, "state": "prepared"},
                {"chat": "#9", "name": "News", "kind": "channel", "unread": 0, "state": "left"},
            ],
            "actions": [],
        }


async def test_list_names_the_owner_whose_approval_holds(world: World) -> None:
    async with world.running():
        world.core.add(contact(4, customData=with_grant({}, Grant(ALICE, "x"))))
        world.core.add(contact(5, "Other", customData=with_grant({}, Grant(BOB, "x"))))
        del world.board.known[BOB.member_id]
        chats = (await world.use("list"))["chats"]
        assert [chat.get("approved") for chat in chats] == ["Alice", None]


async def test_list_shows_actions_until_their_result_was_delivered(world: World, mock_clock: MockClock) -> None:
    async with world.running():
        world.core.add(contact(4))
        running = world.start("send", chat="@4", text="x" * 600)
        await world.posted()
        [action] = (await world.use("list"))["actions"]
        assert action == {
            "action": 1,
            "tool": "send",
            "input": {"chat": "@4", "text": "x" * 600},
            "state": "pending",
            "open": True,
            "expires": "2026-12-01T11:00:00Z",
        }
        await world.approve()
        await running.result()
        assert (await world.use("list"))["actions"] == []


async def test_list_stays_under_its_size_with_very_many_long_actions(world: World) -> None:
    async with world.running():
        world.core.add(contact(4))
        for number in range(1, 11):
            world.start("send", chat="@4", text=f"{number} " + "x" * 10_000)
            await world.posted(number)
        content = await world.use("list")
        assert len(content["actions"]) == 10
        assert len(str(content)) < 61_000
        assert content["actions"][0]["input"]["text"].endswith(" characters)")
        world.nursery.cancel_scope.cancel()


async def test_list_stays_under_its_size_with_very_many_chats(world: World) -> None:
    async with world.running():
        for number in range(4, 1004):
            world.core.add(contact(number, f"Contact number {number} " + "n" * 60))
        content = await world.use("list")
        assert len(str(content)) < 61_000
        assert content["more"] + len(content["chats"]) == 1000


async def test_names_of_others_are_shown_with_what_cannot_be_seen(world: World) -> None:
    async with world.running():
        world.core.add(contact(4, "gpj\u202e\u200bexe\nx" + "y" * 300))
        [chat] = (await world.use("list"))["chats"]
        assert chat["name"].startswith("gpj<U+202E><U+200B>exe x")
        assert len(chat["name"]) < 130


async def test_history_pages_back_to_the_beginning_and_marks_nothing(world: World) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        for i in range(250):
            world.core.arrive(ref, f"m{i}")
            world.core.chats[ref].items.append(item(5000 + i, service=True))
        first = await world.use("history", chat="@4")
        assert [m["text"] for m in first["messages"]] == [f"m{i}" for i in range(200, 250)]
        assert first["more"] > 0
        seen, content = first["messages"], first
        while content["more"]:
            content = await world.use("history", chat="@4", before=seen[0]["item"], limit=100)
            seen = content["messages"] + seen
        assert [m["text"] for m in seen] == [f"m{i}" for i in range(250)]
        assert world.core.did("/_read") == []


async def test_history_searches(world: World) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        world.core.arrive(ref, "a trail map", "other", "Trail head")
        content = await world.use("history", chat="@4", search="trail ")
        assert ([m["text"] for m in content["messages"]], content["more"]) == (["a trail map", "Trail head"], 0)
        assert (await world.use("history", chat="@4", search="a\nb"))["error"] == "`search` must be one line of text."


async def test_history_before_an_item_of_another_chat_is_refused(world: World) -> None:
    async with world.running():
        world.core.arrive(world.core.add(contact(4)), "one")
        world.core.add(contact(5, "Other"))
        assert (await world.use("history", chat="@5", before=101))["error"] == "Item 101 is not in @5."


async def test_history_of_the_control_chat_is_refused(world: World) -> None:
    async with world.running():
        world.core.add(group(1, "My Agent", customData={"simplexMcp": {"control": True}}))
        assert (await world.use("history", chat="#1"))["error"].startswith("#1 is the chat of your owners")


async def test_a_page_of_long_messages_keeps_the_newest(world: World) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        world.core.arrive(ref, *(f"{i}" + "x" * 15_000 for i in range(6)))
        content = await world.use("history", chat="@4")
        assert [m["text"][0] for m in content["messages"]] == ["3", "4", "5"]
        assert content["more"] == 3
