"""Collecting what arrives: each message once, in order, in its last state."""

from __future__ import annotations

from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from simplexmcp import messages
from simplexmcp.chats import chat_of
from simplexmcp.inbox import CAPACITY, Inbox
from simplexmcp.watch import Watch, changes_in
from tests.recorded import frames
from tests.tools.world import contact, group, info, item, member

HELPER = info(contact(4))
TRAIL = info(group(15))
BOB = member(44, "Bob")


def new(*items: dict[str, Any], chat: dict[str, Any] = HELPER) -> dict[str, Any]:
    return {"type": "newChatItems", "chatItems": [{"chatInfo": chat, "chatItem": one} for one in items]}


def update(one: dict[str, Any], chat: dict[str, Any] = HELPER) -> dict[str, Any]:
    return {"type": "chatItemUpdated", "chatItem": {"chatInfo": chat, "chatItem": one}}


def deletion(one: dict[str, Any], *, marked: bool) -> dict[str, Any]:
    entry = {"chatInfo": HELPER, "chatItem": one}
    return {
        "type": "chatItemsDeleted",
        "chatItemDeletions": [{"deletedChatItem": entry, **({"toChatItem": entry} if marked else {})}],
    }


def texts(inbox: Inbox) -> list[str]:
    return [a.item["content"]["msgContent"]["text"] for a in inbox.ready()]


async def test_messages_of_the_chat_come_in_their_order_and_once() -> None:
    watch = Watch()
    with watch.collect("@4") as inbox:
        watch.on_event(new(item(9, "one"), item(8, "two")))
        watch.on_event(new(item(9, "one")))
        watch.on_event(new(item(10, "elsewhere", by=BOB), chat=TRAIL))
        assert texts(inbox) == ["one", "two"]
    watch.on_event(new(item(11, "after")))
    assert texts(inbox) == ["one", "two"]


async def test_own_messages_service_items_and_empty_lists_are_ignored() -> None:
    watch = Watch()
    with watch.collect(None) as inbox:
        watch.on_event(new(item(1, own=True), item(2, service=True)))
        watch.on_event(new())
        watch.on_event({"type": "chatItemNotChanged", "chatItem": {"chatInfo": HELPER, "chatItem": item(3)}})
        assert texts(inbox) == []


async def test_the_control_chat_and_other_profiles_are_never_collected() -> None:
    watch = Watch()
    watch.user_id = 1
    control = info(group(1, customData={"simplexMcp": {"control": True}}))
    with watch.collect(None) as inbox, watch.collect("#1") as direct:
        watch.on_event(new(item(1, by=BOB), chat=control))
        watch.on_event(new(item(2)) | {"user": {"userId": 2}})
        assert (texts(inbox), texts(direct)) == ([], [])
        watch.on_event(new(item(3, "mine")) | {"user": {"userId": 1}})
        assert texts(inbox) == ["mine"]


async def test_edits_and_deletions_of_collected_messages_are_applied() -> None:
    watch = Watch()
    with watch.collect("@4") as inbox:
        watch.on_event(new(item(1, "wrong"), item(2, "gone"), item(3, "taken back")))
        watch.on_event(update(item(1, "right", itemEdited=True)))
        watch.on_event(deletion(item(2), marked=False))
        watch.on_event(deletion(item(3, itemDeleted={"type": "deleted"}), marked=True))
        watch.on_event(deletion(item(4, itemDeleted={"type": "deleted"}), marked=True))
        assert [messages.item_id(a.item) for a in inbox.ready()] == [1, 3]
        assert texts(inbox)[0] == "right"
        watch.on_event({"type": "groupChatItemsDeleted", "chatItemIDs": [1, "x", None]})
        assert [messages.item_id(a.item) for a in inbox.ready()] == [3]


async def test_an_edit_of_a_message_that_never_came_is_a_new_message() -> None:
    watch = Watch()
    with watch.collect("@4") as inbox:
        watch.on_event(update(item(5, "edited")))
        watch.on_event(update(item(6, "read before", unread=False)))
        assert texts(inbox) == ["edited"]


async def test_live_messages_are_held_until_they_are_final(mock_clock: trio.testing.MockClock) -> None:
    watch = Watch()
    with watch.collect("@4") as inbox:
        watch.on_event(new(item(1, "h", live=True)))
        arrived = inbox.last_at
        assert (texts(inbox), inbox.live()) == ([], 1)
        mock_clock.jump(5)
        watch.on_event(update(item(1, "he", live=True)))
        assert inbox.last_at == arrived
        watch.on_event(update(item(1, "hey")))
        assert (texts(inbox), inbox.live()) == (["hey"], 0)
        assert inbox.last_at == trio.current_time()


async def test_a_full_inbox_counts_what_comes_later_once() -> None:
    watch = Watch()
    with watch.collect("@4") as inbox:
        for _ in range(2):
            watch.on_event(new(*(item(number) for number in range(1, CAPACITY + 31))))
        assert (len(inbox.ready()), inbox.overflow(), inbox.overflow("@4"), inbox.overflow("@5")) == (
            CAPACITY,
            30,
            30,
            0,
        )


async def test_messages_up_to_the_sent_one_are_dropped_also_later() -> None:
    watch = Watch()
    with watch.collect("@4") as inbox:
        watch.on_event(new(item(5), item(7, "reply")))
        inbox.start_after(6)
        watch.on_event(new(item(4)))
        assert texts(inbox) == ["reply"]


async def test_a_change_wakes_who_waits() -> None:
    watch = Watch()
    woken: list[str] = []
    with watch.collect("@4") as inbox:

        async def wait(name: str) -> None:
            await inbox.changed()
            woken.append(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, "a")
            nursery.start_soon(wait, "b")
            await wait_all_tasks_blocked()
            assert woken == []
            watch.on_event(new(item(1)))
    assert sorted(woken) == ["a", "b"]


async def test_a_link_that_is_there_again_leaves_a_gap_to_be_read() -> None:
    watch = Watch()
    with watch.collect("@4") as inbox, watch.joins() as joins:
        watch.on_event({"type": "linkDown", "reason": "x"})
        assert not inbox.gap
        watch.on_event({"type": "linkUp"})
        assert (inbox.gap, joins.gap) == (True, True)


async def test_nothing_is_given_while_earlier_messages_may_be_missing() -> None:
    watch = Watch()
    with watch.collect("@4") as inbox:
        watch.on_event(new(item(8, "before")))
        watch.on_event({"type": "linkUp"})
        assert texts(inbox) == []
        inbox.gap = False
        assert texts(inbox) == ["before"]
        watch.on_event({"type": "linkUp"})
        inbox.gap = False
        inbox.unread()
        watch.on_event(new(item(10, "after the missed one")))
        assert texts(inbox) == []
        watch.chat_gone("@4")
        watch.on_event({"type": "linkUp"})
        inbox.gap = False
        assert texts(inbox) == []


async def test_what_is_read_from_the_chat_comes_in_its_order() -> None:
    watch = Watch()
    chat = chat_of(HELPER)
    assert chat is not None
    with watch.collect("@4") as inbox:
        watch.on_event(new(item(3, "three")))
        inbox.merge(chat, [item(1, "one"), item(2, "two"), item(3, "three")])
        watch.on_event(new(item(4, "four")))
        inbox.merge(chat, [item(2, "two")])
        assert texts(inbox) == ["two", "one", "three", "four"]


async def test_conversations_with_admins_are_collected_under_their_own_reference() -> None:
    watch = Watch()
    scope = {"type": "memberSupport", "groupMember_": {"groupMemberId": 44}}
    with watch.collect("#15") as main, watch.collect("#15(_support:44)") as support:
        watch.on_event(new(item(1, "public", by=BOB), chat=TRAIL))
        watch.on_event(new(item(2, "private", by=BOB), chat=TRAIL | {"groupChatScope": scope}))
        watch.on_event(new(item(3, "unknown", by=BOB), chat=TRAIL | {"groupChatScope": {"type": "new"}}))
        assert (texts(main), texts(support)) == (["public"], ["private"])


async def test_a_chat_that_the_other_side_ends_ends_the_waits_for_it() -> None:
    for event in (
        {"type": "contactDeletedByContact", "contact": contact(4)},
        {"type": "deletedMemberUser", "groupInfo": group(15)},
        {"type": "groupDeleted", "groupInfo": group(15)},
    ):
        watch = Watch()
        with watch.collect("@4") as direct, watch.collect("#15") as trail, watch.collect(None) as everything:
            watch.on_event(event)
            assert (direct.ended, trail.ended) == ("contact" in event, "contact" not in event)
            assert not everything.ended
            assert (direct.gone, trail.gone) == (False, False)


async def test_a_chat_that_is_left_takes_its_messages_along() -> None:
    watch = Watch()
    with watch.collect("#15") as trail, watch.collect(None) as everything:
        watch.on_event(new(item(1, "old", by=BOB), chat=TRAIL))
        watch.on_event(new(item(2, "other")))
        watch.chat_gone("#15")
        assert (trail.gone, everything.gone) == (True, False)
        assert (texts(trail), texts(everything)) == ([], ["other"])


async def test_signs_of_new_connections_are_kept_for_who_connects() -> None:
    watch = Watch()
    watch.on_event({"type": "contactConnected", "contact": contact(3)})
    with watch.joins() as joins:
        watch.on_event({"type": "contactConnecting", "contact": contact(4, status="joined")})
        watch.on_event({"type": "userJoinedGroup", "groupInfo": group(15), "hostMember": {"activeConn": {"connId": 5}}})
        watch.on_event(
            {"type": "businessLinkConnecting", "groupInfo": group(16), "hostMember": {}, "fromContact": contact(4)}
        )
        assert [(j.tag, j.chat.ref, j.connection, j.replaces) for j in joins.seen] == [
            ("contactConnecting", "@4", 14, None),
            ("userJoinedGroup", "#15", 5, None),
            ("businessLinkConnecting", "#16", None, 4),
        ]


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=3) | st.sampled_from(["direct", "group", "rcvMsgContent", "rcvNew"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "chatItems",
                    "chatItem",
                    "chatInfo",
                    "contact",
                    "groupInfo",
                    "contactId",
                    "groupId",
                    "meta",
                    "itemId",
                    "content",
                    "msgContent",
                    "itemStatus",
                    "chatItemDeletions",
                    "toChatItem",
                    "deletedChatItem",
                    "chatItemIDs",
                    "hostMember",
                    "user",
                    "userId",
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)


@given(
    st.sampled_from(
        [
            "newChatItems",
            "chatItemUpdated",
            "chatItemsDeleted",
            "groupChatItemsDeleted",
            "contactConnected",
            "userJoinedGroup",
            "contactDeletedByContact",
            "groupDeleted",
            "newThing",
        ]
    ),
    JSON,
)
def test_no_event_can_stop_the_pump(tag: str, node: Any) -> None:
    watch = Watch()
    watch.user_id = 1
    event = {**(node if isinstance(node, dict) else {}), "type": tag}
    with watch.collect(None), watch.joins():
        watch.on_event(event)
    changes_in(event)


async def test_recorded_events_give_each_received_message_of_the_agent_once() -> None:
    for name, edited_unseen in (("04-send", {53}), ("15c-deleted-unread", set())):
        watch = Watch()
        expected: list[int] = []
        with watch.collect(None) as inbox:
            for frame in frames(name):
                if frame["core"] == "agent" and frame["dir"] == "event":
                    event = frame["resp"]
                    watch.on_event(event)
                    arrived = event.get("chatItems", []) if event["type"] == "newChatItems" else []
                    numbers = [messages.item_id(e["chatItem"]) for e in arrived if messages.is_received(e["chatItem"])]
                    expected += [number for number in numbers if number is not None]
            kept = [messages.item_id(a.item) for a in inbox.ready()]
        assert len(expected) == len(set(expected)) > 2
        assert set(kept) - set(expected) == edited_unseen
        assert len(kept) == len(set(kept)) > 2
