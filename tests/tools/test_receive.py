"""`receive` (flow 5): what is unread, what arrives, and that nothing is lost or given twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from simplexmcp.errors import LinkLost
from tests.fakes import Call
from tests.tools.world import World, contact, group, item, member

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock

BOB = member(44, "Bob")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def texts(content: dict) -> list[str]:
    return [message["text"] for message in content["messages"]]


async def test_unread_messages_come_oldest_first_and_are_marked_read(world: World) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        world.core.arrive(ref, "one", "two")
        content = await world.use("receive", chat="@4")
        assert content["chat"] == "@4"
        assert texts(content) == ["one", "two"]
        assert content["more"] == 0
        assert content["messages"][0]["from"] == {"name": "Helper", "bot": True}
        assert world.core.did("/_read") == ["/_read chat items @4 101,102"]
        assert await world.use("receive", chat="@4") == {"chat": "@4", "messages": [], "more": 0}


async def test_the_commands_are_those_of_the_flow(world: World) -> None:
    async with world.running():
        world.core.arrive(world.core.add(contact(4)), "one", "two")
        world.core.commands.clear()
        await world.use("receive", chat="@4")
        assert world.core.commands == [
            "/_get chat @4 initial=1",
            "/_get chat @4 around=101 count=0",
            "/_get chat @4 after=101 count=100",
            "/_read chat items @4 101,102",
        ]


async def test_what_is_over_the_limit_stays_unread_and_is_counted(world: World) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        world.core.arrive(ref, *(f"m{i}" for i in range(250)))
        first = await world.use("receive", chat="@4", limit=3)
        assert texts(first) == ["m0", "m1", "m2"]
        assert first["more"] == 247
        seen = texts(first)
        while (content := await world.use("receive", chat="@4", limit=100))["messages"]:
            seen += texts(content)
        assert seen == [f"m{i}" for i in range(250)]


async def test_a_result_stays_under_its_size_and_counts_the_rest(world: World) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        world.core.arrive(ref, *("x" * 15_000 for _ in range(6)))
        sizes = []
        while (content := await world.use("receive", chat="@4"))["messages"]:
            assert len(str(content)) < 60_000
            sizes.append((len(content["messages"]), content["more"]))
        assert sizes == [(3, 3), (3, 0)]


async def test_service_items_are_marked_read_with_the_messages(world: World) -> None:
    async with world.running():
        ref = world.core.add(group(15), item(5, service=True), item(6, "hi", by=BOB), item(7, service=True))
        content = await world.use("receive", chat=ref)
        assert texts(content) == ["hi"]
        assert content["messages"][0]["from"] == {"name": "Bob", "member": 44, "role": "member"}
        assert world.core.chats[ref].unread() == []


async def test_service_items_alone_are_no_messages_and_do_not_stay_unread(world: World) -> None:
    async with world.running():
        ref = world.core.add(group(15), item(5, service=True))
        assert (await world.use("receive", chat=ref))["messages"] == []
        assert world.core.chats[ref].unread() == []


async def test_it_waits_for_the_next_message_and_says_so(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        ref = world.core.add(group(12))
        call = Call()
        running = world.start("receive", call, chat="#12", wait=3600)
        await wait_all_tasks_blocked()
        assert call.said == ["No new messages in #12; waiting until 13:00."]
        await trio.sleep(1000)
        world.core.arrive(ref, "post", by=BOB)
        content = await running.result()
        assert texts(content) == ["post"]
        assert world.core.chats[ref].unread() == []
        assert trio.current_time() < 1001


async def test_an_empty_wait_ends_at_its_time(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        world.core.add(group(12))
        start = trio.current_time()
        assert await world.use("receive", chat="#12", wait=60) == {"chat": "#12", "messages": [], "more": 0}
        assert trio.current_time() - start == pytest.approx(60)


async def test_a_message_that_arrives_while_pages_are_read_comes_once(world: World) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        world.core.arrive(ref, "one")
        world.core.on_command["/_get chat @4 initial"] = lambda: world.core.arrive(ref, "two")
        world.core.on_command["/_get chat @4 after"] = lambda: world.core.arrive(ref, "three")
        content = await world.use("receive", chat="@4")
        assert texts(content) == ["one", "two", "three"]
        assert content["more"] == 0
        assert world.core.chats[ref].unread() == []


@pytest.mark.parametrize("unread", [0, 1, 2, 5, 99, 100, 101, 250])
@pytest.mark.parametrize("limit", [1, 4, 100])
async def test_what_remains_is_counted_exactly_while_more_arrives(world: World, unread: int, limit: int) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        world.core.arrive(ref, *(f"m{i}" for i in range(unread)))
        world.core.arrive(ref, "typing", live=True)
        for page, burst in (("initial", 30), ("after", 130)):
            new = ["new"] * burst
            world.core.on_command[f"/_get chat @4 {page}"] = lambda new=new: world.core.arrive(ref, *new) and None
        content = await world.use("receive", chat=ref, limit=limit)
        given = len(content["messages"])
        assert (given, content["more"]) == (limit, len(world.core.chats[ref].unread()))


async def test_a_live_message_is_waited_for_until_it_is_final(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        running = world.start("receive", chat="@4", wait=600)
        await wait_all_tasks_blocked()
        [number] = world.core.arrive(ref, "he", live=True)
        await trio.sleep(5)
        world.core.change(ref, number, text="hello")
        await trio.sleep(5)
        assert not running.done.is_set()
        world.core.change(ref, number, text="hello there", itemLive=None)
        assert texts(await running.result()) == ["hello there"]


async def test_a_live_message_that_never_ends_is_counted(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        running = world.start("receive", chat="@4", wait=60)
        await wait_all_tasks_blocked()
        world.core.arrive(ref, "he", live=True)
        assert await running.result() == {"chat": "@4", "messages": [], "more": 1}


async def test_without_a_chat_the_oldest_unread_comes_first(world: World) -> None:
    async with world.running():
        first, second = world.core.add(contact(4)), world.core.add(group(15))
        world.core.arrive(second, "older", by=BOB)
        world.core.arrive(first, "newer")
        assert await world.use("receive") | {"messages": []} == {"chat": "#15", "messages": [], "more": 0}
        assert texts(await world.use("receive")) == ["newer"]
        assert await world.use("receive") == {"chat": None, "messages": [], "more": 0}


async def test_without_a_chat_it_waits_for_the_first_that_gets_something(
    world: World, autojump_clock: MockClock
) -> None:
    async with world.running():
        world.core.add(contact(4))
        ref = world.core.add(group(15))
        call = Call()
        running = world.start("receive", call, wait=60)
        await wait_all_tasks_blocked()
        assert call.said == ["No new messages in any chat; waiting until 12:01."]
        world.core.arrive(ref, "post", by=BOB)
        content = await running.result()
        assert (content["chat"], texts(content)) == ("#15", ["post"])


async def test_the_control_chat_is_refused_and_never_collected(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        control = group(1, "My Agent", role="owner", customData={"simplexMcp": {"control": True}})
        ref = world.core.add(control)
        world.core.arrive(ref, "/approve 7", by=BOB)
        refused = await world.use("receive", chat="#1")
        assert refused["error"].startswith("#1 is the chat of your owners")
        running = world.start("receive", wait=60)
        await wait_all_tasks_blocked()
        world.core.arrive(ref, "/approve 8", by=BOB)
        assert await running.result() == {"chat": None, "messages": [], "more": 0}
        assert len(world.core.chats[ref].unread()) == 2


async def test_a_result_that_does_not_reach_the_client_is_given_again(world: World) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        world.core.arrive(ref, "one")
        lost = await world.call("receive", chat="@4")
        assert texts(lost.content) == ["one"]
        world.core.arrive(ref, "two")
        assert texts(await world.use("receive", chat="@4")) == ["one", "two"]
        assert texts(await world.use("receive", chat="@4")) == []


async def test_without_a_chat_a_lost_result_comes_first(world: World) -> None:
    async with world.running():
        ref, other = world.core.add(contact(4)), world.core.add(contact(5, "Other"))
        world.core.arrive(ref, "one")
        await world.call("receive", chat="@4")
        world.core.arrive(other, "two")
        content = await world.use("receive")
        assert (content["chat"], texts(content)) == ("@4", ["one"])


async def test_a_message_deleted_before_it_was_given_again_has_no_text(world: World) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        [number] = world.core.arrive(ref, "secret")
        await world.call("receive", chat="@4")
        marked = item(number, "secret", itemDeleted={"type": "deleted"})
        entry = {"chatInfo": world.core.chats[ref].info, "chatItem": marked}
        world.core.emit("chatItemsDeleted", chatItemDeletions=[{"deletedChatItem": entry, "toChatItem": entry}])
        [message] = (await world.use("receive", chat="@4"))["messages"]
        assert (message["text"], message["deleted"]) == ("", True)


async def test_two_calls_at_once_do_not_give_a_message_twice(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        calls = [world.start("receive", chat="@4", wait=60), world.start("receive", wait=60)]
        await wait_all_tasks_blocked()
        world.core.arrive(ref, "one")
        results = [await call.result() for call in calls]
        assert sorted(text for content in results for text in texts(content)) == ["one"]


async def test_two_calls_that_read_the_same_pages_do_not_give_a_message_twice(tmp_path: Path) -> None:
    for late in range(12):
        (tmp_path / str(late)).mkdir()
        world = World(tmp_path / str(late))
        async with world.running():
            world.core.arrive(world.core.add(contact(4)), "one", "two")
            first = world.start("receive", chat="@4")
            for _ in range(late):
                await trio.lowlevel.checkpoint()
            second = world.start("receive")
            seen = texts(await first.result()) + texts(await second.result())
            assert seen == ["one", "two"]


async def test_a_reply_goes_to_the_send_or_to_the_receive_that_waits_not_to_both(
    world: World, autojump_clock: MockClock
) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        sending = world.start("send", chat=ref, text="hello", wait=60, idle=5)
        await world.approve()
        receiving = world.start("receive", chat=ref, wait=60)
        await wait_all_tasks_blocked()
        world.core.arrive(ref, "reply")
        assert texts(await receiving.result()) == ["reply"]
        assert (await sending.result())["responses"] == []


async def test_a_message_whose_marking_failed_is_not_given_by_another_call_too(
    world: World, autojump_clock: MockClock
) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        sending = world.start("send", chat=ref, text="hello", wait=60, idle=5)
        await world.approve()
        await wait_all_tasks_blocked()
        world.core.arrive(ref, "reply", quiet=True)
        world.core.fail["/_read"] = LinkLost("link/lost", "lost")
        assert "nobody knows" in (await world.use("receive", chat=ref))["error"]
        world.core.emit("linkUp")
        assert (await sending.result())["responses"] == []
        assert texts(await world.use("receive", chat=ref)) == ["reply"]


async def test_after_a_lost_link_each_message_comes_once(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        running = world.start("receive", chat="@4", wait=600)
        await wait_all_tasks_blocked()
        world.core.arrive(ref, "missed", quiet=True)
        world.core.emit("linkUp")
        assert texts(await running.result()) == ["missed"]
        running = world.start("receive", chat="@4", wait=60)
        await wait_all_tasks_blocked()
        world.core.emit("linkUp")
        assert (await running.result())["messages"] == []


async def test_a_link_that_goes_again_is_waited_for(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        running = world.start("receive", chat="@4", wait=600)
        await wait_all_tasks_blocked()
        world.core.arrive(ref, "missed", quiet=True)
        world.core.fail["/_get chat @4 initial"] = LinkLost("link/down", "down")
        world.core.emit("linkUp")
        await trio.sleep(10)
        assert not running.done.is_set()
        world.core.emit("linkUp")
        assert texts(await running.result()) == ["missed"]


async def test_what_comes_after_a_missed_message_waits_for_it(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        running = world.start("receive", chat="@4", wait=600)
        await wait_all_tasks_blocked()
        world.core.arrive(ref, "missed", quiet=True)
        world.core.fail["/_get chat @4 initial"] = LinkLost("link/lost", "lost")
        world.core.emit("linkUp")
        await wait_all_tasks_blocked()
        world.core.arrive(ref, "later")
        await trio.sleep(10)
        assert not running.done.is_set()
        world.core.emit("linkUp")
        assert texts(await running.result()) == ["missed", "later"]


async def test_a_link_that_is_down_is_one_clear_line(world: World) -> None:
    async with world.running():
        world.core.add(contact(4))
        world.core.fail["/_get chat"] = LinkLost("link/down", "down")
        assert (await world.use("receive", chat="@4"))["error"].startswith("The SimpleX core cannot be reached now")


async def test_a_wait_ends_when_the_other_side_ends_the_chat(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        world.core.add(contact(4))
        running = world.start("receive", chat="@4", wait=86400)
        await wait_all_tasks_blocked()
        world.core.emit("contactDeletedByContact", contact=contact(4, status="deleted"))
        assert await running.result() == {"chat": "@4", "messages": [], "more": 0}
        assert trio.current_time() < 1


async def test_a_stop_ends_the_wait_with_a_result(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        world.core.add(contact(4))
        calls = [world.start("receive", chat="@4", wait=86400), world.start("receive", wait=86400)]
        await wait_all_tasks_blocked()
        world.tools.stop()
        assert [(await call.result())["messages"] for call in calls] == [[], []]


async def test_an_item_deleted_between_two_reads_begins_the_reading_again(world: World) -> None:
    async with world.running():
        ref = world.core.add(contact(4))
        world.core.arrive(ref, "one", "two")
        world.core.on_command["/_get chat @4 initial"] = lambda: world.core.chats[ref].items.pop(0) and None
        assert texts(await world.use("receive", chat="@4")) == ["two"]


async def test_a_conversation_with_the_admins_is_a_chat_of_its_own(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        mine = group(15)
        mine["membership"]["supportChat"] = {"unread": 1}
        ref = world.core.add(mine)
        support = world.core.add(mine, scope={"type": "memberSupport"})
        world.core.arrive(support, "from the admins", by=BOB)
        assert (await world.use("receive", chat=ref))["messages"] == []
        content = await world.use("receive")
        assert (content["chat"], texts(content)) == ("#15(_support)", ["from the admins"])
        running = world.start("receive", chat="#15(_support)", wait=60)
        await wait_all_tasks_blocked()
        world.core.arrive(support, "more", by=BOB)
        assert texts(await running.result()) == ["more"]


@pytest.mark.parametrize("target", [{"chat": "@4", "wait": 60}, {"wait": 60}])
async def test_cancelled_at_any_await_nothing_is_lost_or_doubled(tmp_path: Path, target: dict) -> None:
    for checkpoint in range(1, 40):
        (tmp_path / str(checkpoint)).mkdir()
        world = World(tmp_path / str(checkpoint))
        async with world.running():
            ref = world.core.add(contact(4))
            world.core.arrive(ref, "one", "two")
            cut = await world.cancelled_after(checkpoint, "receive", **target)
            world.core.arrive(ref, "three")
            seen = texts(cut.content) if cut.content else []
            while (content := await world.use("receive", chat="@4"))["messages"]:
                seen += texts(content)
            assert seen == ["one", "two", "three"]
            if cut.content is not None:
                return
    raise AssertionError("the call never ended")
