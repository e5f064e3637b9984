"""Messages: what the sender and the others see of sending, statuses, edits, quotes, mentions, deletions, reactions."""

from __future__ import annotations

import json

import pytest

from tests.sandbox.world import Person, World

HEART = {"type": "emoji", "emoji": "❤"}


def _team(role: str = "member") -> tuple[World, Person, Person, Person]:
    world = World()
    agent, bob, carol = world.person("My Agent"), world.person("Bob"), world.person("Carol")
    world.group(agent, "Team", bob, carol, role=role)
    for person in (agent, bob, carol):
        person.forget()
    return world, agent, bob, carol


def test_a_sent_message_is_new_in_the_response_then_sent_then_received() -> None:
    world = World()
    agent, bob = world.person("My Agent"), world.person("Bob")
    ref = f"@{world.connect(agent, bob)[0]}"
    agent.forget()
    item = agent.say(ref, "hello")
    assert item["meta"]["itemStatus"] == {"type": "sndNew"}
    assert agent.events == []
    world.settle()
    changes = [e["chatItems"][0]["chatItem"]["meta"]["itemStatus"] for e in agent.got("chatItemsStatusesUpdated")]
    assert changes == [
        {"type": "sndSent", "sndProgress": "complete"},
        {"type": "sndRcvd", "msgRcptStatus": "ok", "sndProgress": "complete"},
    ]


def test_several_messages_of_one_command_get_ids_in_order_and_arrive_in_order() -> None:
    world, agent, bob, carol = _team()
    messages = [{"msgContent": {"type": "text", "text": text}} for text in ("one", "two", "three")]
    items = [i["chatItem"]["meta"]["itemId"] for i in agent.do("/_send #1 json", messages)["chatItems"]]
    assert items == sorted(items)
    world.settle()
    assert bob.texts("#1")[-3:] == carol.texts("#1")[-3:] == ["one", "two", "three"]


def test_a_group_message_to_two_is_sent_once_for_each() -> None:
    world, agent, _, _ = _team()
    item = agent.say("#1", "hello")["meta"]["itemId"]
    world.settle()
    info = agent.do(f"/_get item info #1 {item}")["chatItemInfo"]
    assert len(info["memberDeliveryStatuses"]) == 2
    assert {row["groupMemberId"] for row in info["memberDeliveryStatuses"]} == {
        member["groupMemberId"] for member in agent.members().values()
    }


def test_an_edit_replaces_the_text_for_all_and_keeps_the_versions() -> None:
    world, agent, bob, _ = _team()
    item = agent.say("#1", "helo")["meta"]["itemId"]
    world.settle()
    edited = {"msgContent": {"type": "text", "text": "hello"}, "mentions": {}}
    agent.do(f"/_update item #1 {item} live=off json", edited)
    world.settle()
    assert bob.texts("#1")[-1] == "hello"
    assert bob.item("#1", "hello")["meta"]["itemEdited"] is True
    versions = agent.do(f"/_get item info #1 {item}")["chatItemInfo"]["itemVersions"]
    assert [v["msgContent"]["text"] for v in versions] == ["hello", "helo"]


def test_an_edit_without_a_change_says_so_and_an_old_message_cannot_be_edited() -> None:
    world, agent, _, _ = _team()
    item = agent.say("#1", "hello")["meta"]["itemId"]
    world.settle()
    edit = f"/_update item #1 {item} live=off json"
    same = {"msgContent": {"type": "text", "text": "hello"}, "mentions": {}}
    assert agent.do(edit, same)["type"] == "chatItemNotChanged"
    world.now += 25 * 3600
    other = {"msgContent": {"type": "text", "text": "hello!"}, "mentions": {}}
    assert agent.refused(edit, other)["type"] == "invalidChatItemUpdate"


def test_a_quote_carries_the_text_and_its_author() -> None:
    world, agent, bob, carol = _team()
    bob.say("#1", "where do we meet?")
    world.settle()
    agent.say("#1", "at the lake", quotedItemId=agent.item_id("#1", "where do we meet?"))
    world.settle()
    quoted = carol.item("#1", "at the lake")["quotedItem"]
    assert quoted["content"]["text"] == "where do we meet?"
    assert quoted["chatDir"]["groupMember"]["localDisplayName"] == "Bob"
    mine = bob.item("#1", "at the lake")
    assert mine["quotedItem"]["chatDir"]["type"] == "groupSnd"
    assert mine["meta"]["userMention"] is True


def test_a_mention_marks_the_message_for_that_member_only() -> None:
    world, agent, bob, carol = _team()
    agent.say("#1", "@Bob look", mentions={"Bob": agent.member_id("Bob")})
    world.settle()
    assert bob.item("#1", "@Bob look")["meta"]["userMention"] is True
    assert carol.item("#1", "@Bob look")["meta"]["userMention"] is False
    assert list(carol.item("#1", "@Bob look")["mentions"]) == ["Bob"]
    assert bob.chat("#1", "initial=1")["chatStats"]["unreadMentions"] == 1
    assert carol.chat("#1", "initial=1")["chatStats"]["unreadMentions"] == 0


def test_a_mention_that_is_not_in_the_text_is_dropped() -> None:
    world, agent, bob, _ = _team()
    item = agent.say("#1", "look", mentions={"Bob": agent.member_id("Bob")})
    assert item["mentions"] == {}
    world.settle()
    assert bob.item("#1", "look")["meta"]["userMention"] is False


def test_a_mention_of_nobody_in_the_group_is_refused() -> None:
    _, agent, _, _ = _team()
    message = {"msgContent": {"type": "text", "text": "@Bob look"}, "mentions": {"Bob": 99}}
    assert agent.core.command(f"/_send #1 json {json.dumps([message])}")["type"] == "chatCmdError"


def test_a_message_deleted_for_all_is_marked_with_the_others_and_gone_when_full_deletion_is_on() -> None:
    for full, left in (("off", ["oops"]), ("on", [])):
        world = World()
        agent, bob = world.person("My Agent"), world.person("Bob")
        world.group(agent, "Team", bob, groupPreferences={"fullDelete": {"enable": full}})
        item = agent.say("#1", "oops")["meta"]["itemId"]
        world.settle()
        agent.do(f"/_delete item #1 {item} broadcast")
        world.settle()
        assert bob.got("chatItemsDeleted") or bob.got("chatItemUpdated")
        assert [t for t in bob.texts("#1") if t == "oops"] == left
        if left:
            assert bob.item("#1", "oops")["meta"]["itemDeleted"]["type"] == "deleted"


def test_a_message_deleted_for_oneself_stays_with_the_others() -> None:
    world, agent, bob, _ = _team()
    item = agent.say("#1", "hello")["meta"]["itemId"]
    world.settle()
    agent.do(f"/_delete item #1 {item} internal")
    assert "hello" not in agent.texts("#1")
    assert "hello" in bob.texts("#1")


def test_the_message_of_another_cannot_be_deleted_for_all_by_a_member_but_by_a_moderator() -> None:
    world, agent, bob, carol = _team()
    bob.say("#1", "rude")
    world.settle()
    assert carol.refused(f"/_delete item #1 {carol.item_id('#1', 'rude')} broadcast")["type"] == "invalidChatItemDelete"
    agent.do(f"/_delete member item #1 {agent.item_id('#1', 'rude')}")
    world.settle()
    moderated = carol.item("#1", "rude")["meta"]["itemDeleted"]
    assert moderated["type"] == "moderated"
    assert moderated["byGroupMember"]["localDisplayName"] == "My Agent"


def test_a_reaction_is_counted_for_all_once_and_taken_back() -> None:
    world, agent, bob, carol = _team()
    agent.say("#1", "hello")
    world.settle()
    bob.do(f"/_reaction #1 {bob.item_id('#1', 'hello')} on", HEART)
    world.settle()
    counts = carol.item("#1", "hello")["reactions"]
    assert counts == [{"reaction": HEART, "userReacted": False, "totalReacted": 1}]
    assert agent.got("chatItemReaction")[0]["added"] is True
    again = bob.core.command(f'/_reaction #1 {bob.item_id("#1", "hello")} on {{"type":"emoji","emoji":"❤"}}')
    assert again["type"] == "chatCmdError"
    bob.do(f"/_reaction #1 {bob.item_id('#1', 'hello')} off", HEART)
    world.settle()
    assert carol.item("#1", "hello")["reactions"] == []


def test_messages_of_a_blocked_member_are_marked_as_blocked() -> None:
    world, agent, bob, carol = _team()
    agent.do(f"/_block #1 {agent.member_id('Bob')} blocked=on")
    world.settle()
    bob.say("#1", "spam")
    world.settle()
    assert carol.item("#1", "spam")["meta"]["itemDeleted"]["type"] == "blockedByAdmin"
    agent.do(f"/_block #1 {agent.member_id('Bob')} blocked=off")
    world.settle()
    bob.say("#1", "sorry")
    world.settle()
    assert "itemDeleted" not in carol.item("#1", "sorry")["meta"]


def test_a_live_message_grows_for_the_others_until_it_is_final() -> None:
    world, agent, bob, _ = _team()
    item = agent.do("/_send #1 live=on json", [{"msgContent": {"type": "text", "text": "I am"}}])
    number = item["chatItems"][0]["chatItem"]["meta"]["itemId"]
    world.settle()
    assert bob.item("#1", "I am")["meta"]["itemLive"] is True
    agent.do(
        f"/_update item #1 {number} live=off json",
        {"msgContent": {"type": "text", "text": "I am here"}, "mentions": {}},
    )
    world.settle()
    assert bob.item("#1", "I am here")["meta"].get("itemLive") is not True


def test_a_message_that_is_too_large_is_refused_before_anything_is_stored() -> None:
    world, agent, bob, _ = _team()
    before = len(agent.chat("#1")["chatItems"])
    text = "x" * 16_000
    assert agent.refused("/_send #1 json", [{"msgContent": {"type": "text", "text": text}}])["type"] == "largeMsg"
    assert len(agent.chat("#1")["chatItems"]) == before
    world.settle()
    assert all(len(t) < 1000 for t in bob.texts("#1"))


@pytest.mark.parametrize(
    "message",
    [
        "{}",
        "[]",
        '[{"msgContent":{"type":"text"}}]',
        '[{"msgContent":{"text":"hi"}}]',
        '[{"msgContent":{"type":"text","text":7}}]',
        "nonsense",
    ],
)
def test_a_message_of_the_wrong_form_is_a_parse_error(message: str) -> None:
    _, agent, _, _ = _team()
    assert agent.refused(f"/_send #1 json {message}")["type"] == "commandError"


def test_a_quote_of_an_item_that_does_not_exist_is_refused() -> None:
    _, agent, _, _ = _team()
    message = {"msgContent": {"type": "text", "text": "hi"}, "quotedItemId": 999}
    assert agent.refused("/_send #1 json", [message])["type"] == "chatItemNotFound"


def test_hostile_text_is_kept_byte_for_byte() -> None:
    world, agent, bob, _ = _team()
    text = 'a"b\\c\n\u202e\u0000\u200b</script> 🧗 {"type":"x"}'
    agent.say("#1", text)
    world.settle()
    assert bob.texts("#1")[-1] == text
