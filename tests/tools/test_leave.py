"""`leave` (flow 7): both kinds, and nothing kept for the chat that gets the number next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from trio.testing import wait_all_tasks_blocked

from simplexmcp.chats import chat_of
from tests.tools.world import World, contact, group, member

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.core.add(contact(4))
    made.core.add(group(9, "Ridgeline", businessChat={"chatType": "business"}))
    return made


async def test_a_group_is_left_and_deleted_after_the_owners_word(world: World) -> None:
    async with world.running():
        running = world.start("leave", chat="#9")
        await world.posted()
        assert world.board.posts[0].startswith("I want to leave business Ridgeline (#9).")
        assert (world.core.did("/_leave"), world.core.did("/_delete")) == ([], [])
        await world.approve()
        assert await running.result() == {"action": 1, "status": "done", "decided_by": "Alice", "chat": "#9"}
        assert (world.core.did("/_leave"), world.core.did("/_delete")) == (["/_leave #9"], ["/_delete #9 full"])


async def test_a_contact_is_deleted(world: World) -> None:
    async with world.running():
        running = world.start("leave", chat="@4")
        await world.approve()
        assert (await running.result())["status"] == "done"
        assert world.board.posts[0].startswith("I want to delete bot Helper (@4).")
        assert (world.core.did("/_leave"), world.core.did("/_delete")) == ([], ["/_delete @4 full"])


async def test_a_group_that_was_left_before_is_only_deleted(world: World) -> None:
    async with world.running():
        ref = world.core.add(group(10, "Old", status="removed"))
        running = world.start("leave", chat=ref)
        await world.approve()
        assert (await running.result())["status"] == "done"
        assert world.core.did("/_leave") == []


async def test_a_repeated_call_attaches_to_the_done_action(world: World) -> None:
    async with world.running():
        lost = world.start("leave", chat="#9")
        await world.posted()
        lost.scope.cancel()
        await lost.done.wait()
        await world.approve()
        await wait_all_tasks_blocked()
        assert (await world.use("leave", chat="#9"))["status"] == "done"
        assert (await world.use("leave", chat="#9"))["error"] == "There is no chat #9; call list to see the chats."


async def test_what_belongs_to_the_left_chat_ends_with_it(world: World) -> None:
    async with world.running():
        world.core.arrive("#9", "old", by=member(44, "Bob"))
        await world.call("receive", chat="#9")  # marked read, its answer lost
        pending = world.start("send", chat="#9", text="hello")
        await world.posted(1)
        leaving = world.start("leave", chat="#9")
        await world.approve(2)
        assert (await leaving.result())["status"] == "done"
        assert (await pending.result())["error"] == "business Ridgeline (#9) is gone."
        world.core.add(group(9, "Newcomers"))
        assert (await world.use("receive", chat="#9"))["messages"] == []


async def test_a_wait_for_a_chat_that_is_left_is_refused(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        waiting = world.start("receive", chat="#9", wait=3600)
        await wait_all_tasks_blocked()
        chat = chat_of(world.core.chats["#9"].info)
        assert chat is not None
        await world.tools.leave(chat)
        assert await waiting.result() == {"error": "#9 is gone; call list to see the chats."}


async def test_a_chat_that_changed_is_not_left(world: World) -> None:
    async with world.running():
        running = world.start("leave", chat="#9")
        await world.posted()
        world.core.chats["#9"].info["groupInfo"]["groupProfile"]["displayName"] = "Other"
        await world.approve()
        assert (await running.result())["error"] == "business Ridgeline (#9) changed after the request."
        assert (world.core.did("/_leave"), world.core.did("/_delete")) == ([], [])


async def test_the_control_chat_and_a_conversation_with_admins_cannot_be_left(world: World) -> None:
    async with world.running():
        world.core.add(group(1, "My Agent", customData={"simplexMcp": {"control": True}}))
        world.core.add(group(9), scope={"type": "memberSupport"})
        assert (await world.use("leave", chat="#1"))["error"].startswith("#1 is the chat of your owners")
        assert (await world.use("leave", chat="#9(_support)"))["error"] == "#9(_support) belongs to #9; leave #9."


async def test_cancelled_at_any_await_the_chat_is_left_once(tmp_path: Path) -> None:
    for step in range(1, 40):
        (tmp_path / str(step)).mkdir()
        world = World(tmp_path / str(step), mode="host")
        world.core.add(group(9))
        async with world.running():
            cut = await world.cancelled_after(step, "leave", chat="#9")
            await wait_all_tasks_blocked()
            if cut.content is not None:
                assert step > 2
                return
            await world.use("leave", chat="#9")
            assert len(world.core.did("/_leave")) == len(world.core.did("/_delete")) == 1
    raise AssertionError("the call never ended")
