"""`send` (flows 4, 6, 8, 10): checks before the card, one send after it, replies by the idle rule."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from simplexmcp.errors import LinkLost, Refused
from simplexmcp.standing import Grant, with_grant
from tests.fakes import ALICE, Call
from tests.tools.world import World, contact, group, item, member

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock

BOB, SWITCHBACK = member(44, "Bob"), member(45, "Switchback Sam")


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.core.add(contact(4))
    made.core.add(
        group(15), item(30, "the question", by=BOB, unread=False), item(31, by=BOB, service=True, unread=False)
    )
    made.core.members[15] = [BOB, SWITCHBACK, member(46, "Gone", memberStatus="left")]
    return made


def texts(content: dict) -> list[str]:
    return [message["text"] for message in content["responses"]]


async def test_nothing_is_sent_before_the_owner_approves(world: World, mock_clock: MockClock) -> None:
    async with world.running():
        call = Call()
        running = world.start("send", call, chat="@4", text="hello")
        await world.posted()
        await wait_all_tasks_blocked()
        assert world.core.did("/_send") == []
        assert call.said == ["Action 1 waits for an approver until 1 Dec 11:00."]
        assert world.board.posts[0].startswith("I want to send a message to bot Helper (@4): `hello`")
        assert await world.approve() is None
        assert await running.result() == {
            "action": 1,
            "status": "done",
            "decided_by": "Alice",
            "chat": "@4",
            "item": 101,
            "responses": [],
            "more": 0,
        }
        assert world.core.did("/_send") == ['/_send @4 json [{"msgContent":{"type":"text","text":"hello"}}]']
        assert world.actions.find(("send", "@4", "hello", None, ())) is None


async def test_a_rejected_send_is_a_result_and_sends_nothing(world: World) -> None:
    async with world.running():
        running = world.start("send", chat="@4", text="hello")
        await world.posted()
        world.actions.reject(1, None, ALICE)
        assert await running.result() == {"action": 1, "status": "rejected", "decided_by": "Alice", "chat": "@4"}
        assert world.core.did("/_send") == []


async def test_replies_are_collected_until_it_is_quiet(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        call = Call()
        running = world.start("send", call, chat="@4", text="hello", wait=600, idle=5)
        await world.approve()
        await trio.sleep(60)
        world.core.arrive("@4", "one")
        await trio.sleep(4)
        world.core.arrive("@4", "two")
        content = await running.result()
        assert texts(content) == ["one", "two"]
        assert trio.current_time() == pytest.approx(69)
        assert world.core.chats["@4"].unread() == []
        assert call.said[1:] == [f"{k} messages in @4; waiting until 12:10." for k in (0, 1, 2)]


async def test_without_a_reply_the_wait_is_counted_from_the_send(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        running = world.start("send", chat="@4", text="hello", wait=60)
        await world.posted()
        await trio.sleep(1000)
        await world.approve()
        assert texts(await running.result()) == []
        assert trio.current_time() == pytest.approx(1060)


async def test_a_reply_that_is_seen_before_the_answer_of_the_send_counts(
    world: World, autojump_clock: MockClock
) -> None:
    async with world.running():
        world.core.on_command["/_send"] = lambda: world.core.arrive("@4", "quick") and None
        running = world.start("send", chat="@4", text="hello", wait=60)
        await world.approve()
        assert texts(await running.result()) == ["quick"]


async def test_what_was_unread_before_is_no_reply(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        world.core.arrive("@4", "before")
        running = world.start("send", chat="@4", text="hello", wait=60)
        await world.approve()
        assert texts(await running.result()) == []
        assert len(world.core.chats["@4"].unread()) == 1


async def test_a_live_reply_is_waited_for_and_else_counted(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        running = world.start("send", chat="@4", text="hello", wait=60, idle=5)
        await world.approve()
        await wait_all_tasks_blocked()
        [number] = world.core.arrive("@4", "he", live=True)
        world.core.arrive("@4", "stuck", live=True)
        await trio.sleep(30)
        world.core.change("@4", number, text="hello", itemLive=None)
        content = await running.result()
        assert (texts(content), content["more"]) == (["hello"], 1)
        assert trio.current_time() == pytest.approx(60)


async def test_at_most_a_hundred_replies_are_kept_and_the_rest_is_counted(
    world: World, autojump_clock: MockClock
) -> None:
    async with world.running():
        running = world.start("send", chat="@4", text="hello", wait=60, limit=10)
        await world.approve()
        await wait_all_tasks_blocked()
        world.core.arrive("@4", *(f"m{i}" for i in range(130)))
        content = await running.result()
        assert (len(texts(content)), content["more"]) == (10, 120)
        assert len(world.core.chats["@4"].unread()) == 120


async def test_an_edited_reply_has_its_last_text(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        running = world.start("send", chat="@4", text="hello", wait=60)
        await world.approve()
        await wait_all_tasks_blocked()
        [number] = world.core.arrive("@4", "wrong")
        world.core.change("@4", number, text="right", itemEdited=True)
        [message] = (await running.result())["responses"]
        assert (message["text"], message["edited"]) == ("right", True)


async def test_replies_of_a_lost_link_are_read_from_the_chat(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        world.core.arrive("@4", "before")
        running = world.start("send", chat="@4", text="hello", wait=60)
        await world.approve()
        await wait_all_tasks_blocked()
        world.core.arrive("@4", "seen")
        world.core.arrive("@4", "missed", quiet=True)
        world.core.emit("linkUp")
        assert texts(await running.result()) == ["seen", "missed"]


async def test_a_reply_after_a_missed_one_is_not_given_before_it(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        running = world.start("send", chat="@4", text="hello", wait=60, idle=5)
        await world.approve()
        await wait_all_tasks_blocked()
        world.core.arrive("@4", "missed", quiet=True)
        world.core.fail["/_get chat @4 initial"] = LinkLost("link/lost", "lost")
        world.core.emit("linkUp")
        await wait_all_tasks_blocked()
        world.core.arrive("@4", "later")
        assert texts(await running.result()) == []
        missed = await world.use("receive", chat="@4")
        assert [message["text"] for message in missed["messages"]] == ["missed", "later"]


# Flow 10


async def test_two_equal_calls_are_one_action_with_one_result(world: World) -> None:
    async with world.running():
        calls = [world.start("send", chat="@4", text="hello") for _ in range(2)]
        await world.approve()
        results = [await call.result() for call in calls]
        assert results[0] == results[1]
        assert len(world.core.did("/_send")) == 1
        assert len(world.board.posts) == 1


async def test_a_lost_call_attaches_again_and_gets_the_replies(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        lost = world.start("send", chat="@4", text="t", wait=60)
        await world.posted()
        lost.scope.cancel()
        await lost.done.wait()
        [action] = (await world.use("list"))["actions"]
        assert action["input"] == {"chat": "@4", "text": "t"}
        assert (action["action"], action["state"], action["open"]) == (1, "pending", False)
        await world.approve()
        await wait_all_tasks_blocked()
        world.core.arrive("@4", "reply")
        await trio.sleep(1000)
        content = await world.use("send", chat="@4", text="t", wait=60, idle=5)
        assert (content["action"], texts(content)) == (1, ["reply"])
        assert trio.current_time() == pytest.approx(1000)
        assert len(world.core.did("/_send")) == 1
        assert (await world.use("list"))["actions"] == []


async def test_a_result_that_is_not_delivered_is_kept_with_its_replies(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        world.start("send", chat="@4", text="t").scope.cancel()
        running = world.start("send", chat="@4", text="t")
        await world.approve()
        running.scope.cancel()
        await wait_all_tasks_blocked()
        world.core.arrive("@4", "reply")
        undelivered = await world.call("send", chat="@4", text="t")
        assert texts(undelivered.content) == ["reply"]
        content = await world.use("send", chat="@4", text="t")
        assert texts(content) == ["reply"]
        assert (await world.use("receive", chat="@4"))["messages"] == []


async def test_replies_of_an_undelivered_result_are_given_by_receive_and_then_not_again(world: World) -> None:
    async with world.running():
        running = world.start("send", chat="@4", text="t")
        await world.posted()
        running.scope.cancel()
        await running.done.wait()
        await world.approve()
        await wait_all_tasks_blocked()
        world.core.arrive("@4", "reply")
        assert texts((await world.call("send", chat="@4", text="t")).content) == ["reply"]
        received = await world.use("receive", chat="@4")
        assert [m["text"] for m in received["messages"]] == ["reply"]
        assert texts(await world.use("send", chat="@4", text="t")) == []


async def test_cancelled_at_any_await_there_is_one_send_and_each_reply_once(tmp_path: Path) -> None:
    for step in range(1, 60):
        (tmp_path / str(step)).mkdir()
        world = World(tmp_path / str(step), mode="host")
        world.core.add(contact(4))
        async with world.running():
            world.core.on_command["/_send"] = lambda world=world: world.core.arrive("@4", "reply") and None
            cut = await world.cancelled_after(step, "send", chat="@4", text="t")
            seen = texts(cut.content) if cut.content else []
            await wait_all_tasks_blocked()
            if cut.content is None:
                seen += texts(await world.use("send", chat="@4", text="t"))
            seen += [m["text"] for m in (await world.use("receive", chat="@4"))["messages"]]
            assert seen == ["reply"]
            assert len(world.core.did("/_send")) == 1
            if cut.content is not None:
                assert step > 4
                return
    raise AssertionError("the call never ended")


async def test_sends_that_are_approved_together_go_out_in_their_order(tmp_path: Path) -> None:
    for run in range(5):
        (tmp_path / str(run)).mkdir()
        world = World(tmp_path / str(run))
        world.core.add(contact(4))
        async with world.running():
            for number in range(1, 9):
                world.start("send", chat="@4", text=f"m{number}")
                await world.posted(number)
            world.actions.approve_sends("@4", ALICE)
            await wait_all_tasks_blocked()
            assert [c.rpartition('"text":"')[2][:2] for c in world.core.did("/_send")] == [f"m{n}" for n in range(1, 9)]


async def test_a_send_that_is_stopped_in_its_lane_lets_the_others_go(world: World) -> None:
    async with world.running():
        entered: list[int] = []

        async def go(number: int, scope: trio.CancelScope) -> None:
            with scope:
                async with world.tools._kit.lanes.turn("@4", number):
                    entered.append(number)
                    await trio.sleep_forever()

        async with trio.open_nursery() as nursery:
            scopes = {number: trio.CancelScope() for number in (1, 2, 3)}
            for number, scope in scopes.items():
                nursery.start_soon(go, number, scope)
            await wait_all_tasks_blocked()
            assert entered == [1]
            scopes[2].cancel()
            await wait_all_tasks_blocked()
            scopes[1].cancel()
            await wait_all_tasks_blocked()
            assert entered == [1, 3]
            scopes[3].cancel()
        assert world.tools._kit.lanes._waiting == {}


# What was shown is what is done


async def test_a_chat_that_changed_after_the_request_gets_nothing(world: World) -> None:
    async with world.running():
        running = world.start("send", chat="@4", text="hello")
        await world.posted()
        world.core.chats["@4"].info["contact"]["profile"]["displayName"] = "Mallory"
        await world.approve()
        content = await running.result()
        assert (content["status"], content["error"]) == ("failed", "bot Helper (@4) changed after the request.")
        assert world.core.did("/_send") == []


@pytest.mark.parametrize("change", ["public", "role", "other"])
async def test_a_group_that_is_another_after_the_request_gets_nothing(world: World, change: str) -> None:
    async with world.running():
        running = world.start("send", chat="#15", text="hello")
        await world.posted()
        info = world.core.chats["#15"].info["groupInfo"]
        if change == "public":
            info["groupProfile"]["publicGroup"] = {"groupType": "group", "groupLink": "x", "publicGroupId": "p"}
        elif change == "role":
            info["membership"]["memberRole"] = "admin"
        else:  # the number was given to another group of the same name
            info["membership"]["memberId"] = "me-again"
        await world.approve()
        assert (await running.result())["error"] == "group Trail (#15) changed after the request."
        assert world.core.did("/_send") == []


async def test_a_quoted_message_or_member_that_changed_stops_the_send(world: World) -> None:
    async with world.running():
        first = world.start("send", chat="#15", text="yes", reply_to=30)
        second = world.start("send", chat="#15", text="hi", mention=[44])
        await world.posted(1)
        await world.posted(2)
        world.core.chats["#15"].items[0]["content"]["msgContent"]["text"] = "another question"
        world.core.members[15][0] = member(44, "Mallory")
        await world.approve(1)
        await world.approve(2)
        errors = {(await first.result())["error"], (await second.result())["error"]}
        assert errors == {
            "The message to reply to changed after the request.",
            "A mentioned member changed after the request.",
        }
        assert world.core.did("/_send") == []


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("send", {"chat": "@4", "text": "t"}),
        ("leave", {"chat": "@4"}),
        ("connect", {"target": "https://relay.example/a#K"}),
    ],
)
async def test_nothing_goes_out_when_the_last_look_refuses(world: World, tool: str, arguments: dict) -> None:
    async def no(action: object, chat: object) -> None:
        raise Refused("not any more")

    async with world.running():
        world.core.plans["https://relay.example/a#K"] = {
            "connectionPlan": {"type": "contactAddress", "contactAddressPlan": {"type": "ok"}}
        }
        world.actions.confirm = no  # type: ignore[method-assign,assignment]
        running = world.start(tool, **arguments)
        await world.approve()
        assert (await running.result())["error"] == "not any more"
        outgoing = [c for c in world.core.commands if c.startswith(("/_send", "/_delete", "/_connect 1", "/_prepare"))]
        assert outgoing == []


async def test_a_chat_that_is_gone_fails_clearly(world: World) -> None:
    async with world.running():
        running = world.start("send", chat="@4", text="hello")
        await world.posted()
        del world.core.chats["@4"]
        await world.approve()
        assert (await running.result())["error"] == "bot Helper (@4) is gone."


async def test_a_link_lost_during_the_send_tells_that_nobody_knows_and_is_not_repeated(world: World) -> None:
    async with world.running():
        running = world.start("send", chat="@4", text="hello")
        await world.posted()
        world.core.fail["/_send"] = LinkLost("link/lost", "lost")
        await world.approve()
        content = await running.result()
        assert content["status"] == "failed"
        assert "nobody knows whether it was done" in content["error"]
        assert len(world.core.did("/_send")) == 1


# Checks before the action


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"chat": "@9", "text": "t"}, "There is no chat @9; call list to see the chats."),
        (
            {"chat": "#15", "text": "t", "reply_to": 31},
            "Item 31 is no message of #15; use history to find the message.",
        ),
        (
            {"chat": "#15", "text": "t", "reply_to": 99},
            "Item 99 is no message of #15; use history to find the message.",
        ),
        ({"chat": "#15", "text": "t", "mention": [47]}, "Member 47 is not in #15."),
        ({"chat": "#15", "text": "t", "mention": [46]}, "Member 46 is not in #15."),
        ({"chat": "@4", "text": "t", "mention": [44]}, "@4 is no group, so nobody can be mentioned there."),
        ({"chat": "@4", "text": ""}, "`text` must not be empty."),
        ({"chat": "@4"}, "`text` is missing."),
        (
            {"chat": "@4", "text": "\ud800"},
            "`text` holds half of a character (a lone surrogate), which no message can carry; remove it.",
        ),
        ({"chat": "#15", "text": "t", "mention": [1, 2, 3, 4]}, "`mention` must have at most 3 entries."),
        ({"chat": "Helper", "text": "t"}, '"Helper" is a name, not a chat ID; use one of @4 (bot Helper).'),
        ({"chat": "trai", "text": "t"}, '"trai" is a name, not a chat ID; use one of #15 (group Trail).'),
        (
            {"chat": "Nobody", "text": "t"},
            '"Nobody" is no chat ID, and no chat has such a name; call list to see the chats.',
        ),
        (
            {"chat": "#015", "text": "t"},
            '"#015" is no chat ID, and no chat has such a name; call list to see the chats.',
        ),
    ],
)
async def test_what_cannot_be_sent_is_refused_without_an_action(world: World, arguments: dict, error: str) -> None:
    async with world.running():
        result = await world.call("send", **arguments)
        assert (result.is_error, result.content) == (True, {"error": error})
        assert world.actions.listed() == []
        assert world.board.posts == []


async def test_the_longest_text_passes_and_one_byte_more_is_refused(world: World) -> None:
    async with world.running():
        refused = await world.use("send", chat="@4", text="é" * 7720)
        assert (
            refused["error"]
            == "The text, as SimpleX encodes it, is 2 bytes too long for one message; send it in parts."
        )
        quoted = await world.use("send", chat="#15", text="x" * 15_300, reply_to=30)
        assert "with the message that it replies to, is" in quoted["error"]
        support = world.core.add(group(15), scope={"type": "memberSupport"})
        scoped = await world.use("send", chat=support, text="x" * 15_438)
        assert "is 64 bytes too long" in scoped["error"]
        running = world.start("send", chat="@4", text="x" * 15_438)
        await world.posted()
        await world.approve()
        assert (await running.result())["status"] == "done"


@pytest.mark.parametrize(
    ("chat", "error"),
    [
        (group(16, role="observer"), "The agent is observer in #16 and cannot send messages there."),
        (group(16, role="relay"), "The agent is relay in #16 and cannot send messages there."),
        (group(16, status="left"), "#16 is not connected (left), so no message can be sent."),
        (contact(16, status="joined"), "@16 is not connected (connecting), so no message can be sent."),
        (contact(16, status=None, preparedContact={}), "@16 is not connected (unknown), so no message can be sent."),
        (
            group(16, role="owner", customData={"simplexMcp": {"control": True}}),
            "#16 is the chat of your owners, which no tool can use; call list to see your chats.",
        ),
    ],
)
async def test_a_chat_where_the_agent_cannot_write_is_refused(world: World, chat: dict, error: str) -> None:
    async with world.running():
        ref = world.core.add(chat)
        assert (await world.use("send", chat=ref, text="t"))["error"] == error


async def test_a_private_message_is_not_quoted_to_the_whole_group(world: World) -> None:
    """The core finds an item of any conversation of a group; its neighbours are those of the one that is asked."""
    async with world.running():
        world.core.chats["#15"].items.append(item(40, "private", by=BOB, unread=False))
        around = world.core._get

        def leaking(ref: str, page: str, number: str, n: str | None, search: str | None) -> dict:
            if page == "count" and number == "1":
                return around(ref, "before", "40", "1", None)
            return around(ref, page, number, n, search)

        world.core._get = leaking  # type: ignore[method-assign]
        refused = await world.use("send", chat="#15", text="look", reply_to=40)
        assert refused["error"] == "Item 40 is no message of #15; use history to find the message."


async def test_reply_and_mentions_are_on_the_card_and_in_the_command(world: World) -> None:
    async with world.running():
        running = world.start("send", chat="#15", text="you are right", reply_to=30, mention=[44, 45])
        await world.posted()
        assert "replying to `the question`" in world.board.posts[0]
        assert "mentioning @Bob, `@Switchback Sam`" in world.board.posts[0]
        await world.approve()
        await running.result()
        [command] = world.core.did("/_send")
        assert json.loads(command.partition(" json ")[2]) == [
            {
                "msgContent": {"type": "text", "text": "@Bob @'Switchback Sam' you are right"},
                "mentions": {"Bob": 44, "Switchback Sam": 45},
                "quotedItemId": 30,
            }
        ]


# Flow 6 and 8


async def test_under_a_standing_approval_nobody_is_asked(world: World) -> None:
    async with world.running():
        custom = with_grant({}, Grant(ALICE, "2026-11-30T21:00:00Z"))
        world.core.chats["@4"].info["contact"]["customData"] = custom
        content = await world.use("send", chat="@4", text="hello")
        assert (content["status"], content["decided_by"]) == ("done", "Alice")
        await wait_all_tasks_blocked()
        assert world.board.posts == [
            "I sent a message to bot Helper (@4): `hello`\nApproved for this chat by Alice. /'revoke @4'"
        ]


async def test_a_standing_approval_of_a_group_is_none_for_its_admins_conversation(world: World) -> None:
    async with world.running():
        custom = with_grant({}, Grant(ALICE, "2026-11-30T21:00:00Z"))
        support = world.core.add(group(15, customData=custom), scope={"type": "memberSupport"})
        running = world.start("send", chat=support, text="hello")
        await world.posted()
        await wait_all_tasks_blocked()
        assert world.core.did("/_send") == []
        assert world.board.posts[0].startswith("I want to send")
        await world.approve()
        assert (await running.result())["status"] == "done"
        assert world.core.did("/_send")[0].startswith("/_send #15(_support) json")


async def test_in_mode_host_it_is_performed_at_once(tmp_path: Path) -> None:
    world = World(tmp_path, mode="host")
    world.core.add(contact(4))
    async with world.running():
        content = await world.use("send", chat="@4", text="hello")
        assert content == {"action": 1, "status": "done", "chat": "@4", "item": 101, "responses": [], "more": 0}
        await wait_all_tasks_blocked()
        assert world.board.posts == [
            "I sent a message to bot Helper (@4): `hello`\nPerformed without approval (mode host)."
        ]


async def test_a_stop_ends_the_wait_for_replies_with_what_came(world: World, autojump_clock: MockClock) -> None:
    async with world.running():
        running = world.start("send", chat="@4", text="hello", wait=86400, idle=3600)
        await world.approve()
        await wait_all_tasks_blocked()
        world.core.arrive("@4", "one")
        await wait_all_tasks_blocked()
        world.tools.stop()
        assert texts(await running.result()) == ["one"]
        assert trio.current_time() < 1
